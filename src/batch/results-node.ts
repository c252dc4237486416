import { type FileHandle, open } from "node:fs/promises";
import { DeltafoldError, InputError } from "../errors.ts";
import { isRecord } from "../json.ts";
import { fileLines } from "./lines-node.ts";
import { type BatchResult, lineOfResult } from "./result.ts";

/** What is asked of the disk; tests bring calls that fail. */
export interface ResultsDisk {
  write(handle: FileHandle, bytes: Uint8Array, position: number): Promise<number>;
}

const realDisk: ResultsDisk = {
  write: async (handle, bytes, position) =>
    (await handle.write(bytes, 0, bytes.length, position)).bytesWritten,
};

/** The disk has no room for more results. */
export class ResultsDiskError extends DeltafoldError {
  constructor(path: string, cause: unknown) {
    const message =
      `There is no room for ${path}. The batch is paused, and nothing is lost: make room, and run the ` +
      "same command again.";
    super("results_disk_full", message, { cause });
  }
}

/** A file of results, to which each is added once. Only one process may write it. */
export class ResultsFile implements AsyncDisposable {
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #disk: ResultsDisk;
  readonly #lines: Set<number>;
  /** Behind the last whole line. */
  #end: number;

  private constructor(
    path: string,
    handle: FileHandle,
    disk: ResultsDisk,
    { lines, end }: { readonly lines: Set<number>; readonly end: number },
  ) {
    this.#path = path;
    this.#handle = handle;
    this.#disk = disk;
    this.#lines = lines;
    this.#end = end;
  }

  /**
   * Opens a file to go on with, or begins one. A last line that was cut short is written anew.
   * @throws InputError for a file of something else, or of another batch
   */
  static async open(
    path: string,
    batchId: string,
    disk: ResultsDisk = realDisk,
  ): Promise<ResultsFile> {
    // Neither flag alone makes a file, leaves what is in it, and lets it be written anywhere.
    const handle = await open(path, "r+").catch((cause) =>
      cause.code === "ENOENT" ? open(path, "wx+").catch(fail) : fail(cause),
    );
    function fail(cause: NodeJS.ErrnoException): never {
      throw new InputError(`${path} can't be written: ${cause.code ?? cause.message}.`);
    }
    try {
      if (!(await handle.stat()).isFile()) {
        throw new InputError(`${path} can't be written: it is no file to go on with.`);
      }
      const held = await written(path, batchId);
      await handle.truncate(held.end);
      return new ResultsFile(path, handle, disk, held);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** How many results it holds. */
  get size(): number {
    return this.#lines.size;
  }

  /** @param line of the request */
  has(line: number): boolean {
    return this.#lines.has(line);
  }

  /**
   * Adds results that it doesn't hold, all or none. They are on the disk then.
   * @throws ResultsDiskError; DeltafoldError where it can't be written
   */
  async add(results: readonly BatchResult[]): Promise<void> {
    const text = results.map((result) => `${JSON.stringify(result)}\n`).join("");
    const bytes = new TextEncoder().encode(text);
    try {
      await this.#write(bytes);
      await this.#handle.sync();
    } catch (cause) {
      // Whoever reads it meanwhile sees no half of a line; where this fails, the next open cuts it.
      await this.#handle.truncate(this.#end).catch(() => {});
      throw this.#error(cause);
    }
    this.#end += bytes.length;
    for (const { id } of results) this.#lines.add(lineOfResult(id)!);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      done += await this.#disk.write(this.#handle, bytes.subarray(done), this.#end + done);
    }
  }

  #error(cause: unknown): DeltafoldError {
    const { code = null } = cause as NodeJS.ErrnoException;
    if (code === "ENOSPC" || code === "EDQUOT") return new ResultsDiskError(this.#path, cause);
    const message = `${this.#path} can't be written: ${code}.`;
    return new DeltafoldError("write_failed", message, { cause });
  }
}

/** What a file holds already. */
async function written(
  path: string,
  batchId: string,
): Promise<{ lines: Set<number>; end: number }> {
  const lines = new Set<number>();
  let end = 0;
  for await (const { number, text, whole } of fileLines(path)) {
    // A process was ended in the middle of it.
    if (!whole) break;
    const line = text === null ? null : requestLine(text, batchId);
    if (line === null) {
      throw new InputError(
        `Line ${number} of ${path} is no result of this batch: name another file.`,
      );
    }
    lines.add(line);
    end += Buffer.byteLength(text!) + 1;
  }
  return { lines, end };
}

function requestLine(text: string, batchId: string): number | null {
  try {
    const value: unknown = JSON.parse(text);
    const id = isRecord(value) ? value["id"] : null;
    return typeof id === "string" ? lineOfResult(id, batchId) : null;
  } catch {
    return null;
  }
}

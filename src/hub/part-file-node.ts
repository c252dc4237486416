import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { codeOf } from "./file-system-node.ts";
import type { HubFile } from "./listing.ts";

const readBytes = 2 ** 20;

/** A file as it comes, hashed as it is written. */
export class PartFile implements AsyncDisposable {
  readonly #file: HubFile;
  readonly #handle: FileHandle;
  #hash: Hash;
  #bytes = 0;

  private constructor(file: HubFile, handle: FileHandle) {
    this.#file = file;
    this.#handle = handle;
    this.#hash = newHash(file);
  }

  /** Opens what is there to go on with it, or begins it. */
  static async open(path: string, file: HubFile, signal: AbortSignal): Promise<PartFile> {
    const part = new PartFile(file, await openToWrite(path));
    try {
      await part.#hashWhatIsThere(signal);
      return part;
    } catch (error) {
      await part[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** How many are there. */
  get bytes(): number {
    return this.#bytes;
  }

  get isWhole(): boolean {
    return this.#bytes === this.#file.size;
  }

  /** Adds what comes next, as far as it belongs to the file. */
  async append(bytes: Uint8Array): Promise<void> {
    const wanted = bytes.subarray(0, this.#file.size - this.#bytes);
    for (let done = 0; done < wanted.length; ) {
      const length = wanted.length - done;
      const position = this.#bytes + done;
      done += (await this.#handle.write(wanted, done, length, position)).bytesWritten;
    }
    this.#hash.update(wanted);
    this.#bytes += wanted.length;
  }

  /** Forgets what came. */
  async restart(): Promise<void> {
    await this.#handle.truncate(0);
    this.#hash = newHash(this.#file);
    this.#bytes = 0;
  }

  /** Puts it on the disk, and returns what its bytes hash to. Only `restart` may follow. */
  async finish(): Promise<string> {
    await this.#handle.sync();
    return this.#hash.digest("hex");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  async #hashWhatIsThere(signal: AbortSignal): Promise<void> {
    const { size } = await this.#handle.stat();
    if (size > this.#file.size) return await this.restart();
    const buffer = new Uint8Array(Math.min(size, readBytes));
    while (this.#bytes < size) {
      signal.throwIfAborted();
      const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, this.#bytes);
      this.#hash.update(buffer.subarray(0, bytesRead));
      this.#bytes += bytesRead;
    }
  }
}

function newHash({ digest, size }: HubFile): Hash {
  if (digest.kind === "sha256") return createHash("sha256");
  // Git hashes a file behind a header that says what it is.
  return createHash("sha1").update(`blob ${size}\0`);
}

async function openToWrite(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r+");
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return await open(path, "wx+");
    throw cause;
  }
}

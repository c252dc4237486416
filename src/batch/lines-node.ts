import { type FileHandle, open } from "node:fs/promises";
import { InputError } from "../errors.ts";
import { batchEnvelopeBytesMax, bodyBytesMax } from "../limits.ts";

const chunkBytes = 65_536;
export const lineBytesMax: number = bodyBytesMax + batchEnvelopeBytesMax;

/** A line of a file, without its end. */
export interface FileLine {
  /** From 1. */
  readonly number: number;
  /** Null for one that is too long, or no UTF-8. */
  readonly text: string | null;
  /** Whether a line end follows. */
  readonly whole: boolean;
}

/**
 * A file's lines, of which one is in memory at a time.
 * @param onBytes hears of all of the file's bytes
 * @throws InputError for a file that can't be read
 */
export async function* fileLines(
  path: string,
  onBytes: (bytes: Uint8Array) => void = () => {},
): AsyncGenerator<FileLine> {
  await using file = await open(path, "r").catch((cause) => unreadable(path, cause));
  const line = new Line();
  let number = 1;
  for await (const bytes of chunksOf(file, path)) {
    onBytes(bytes);
    let from = 0;
    for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, from)) {
      line.add(bytes.subarray(from, end));
      yield { number: number++, text: line.take(), whole: true };
      from = end + 1;
    }
    line.add(bytes.subarray(from));
  }
  if (!line.isEmpty) yield { number, text: line.take(), whole: false };
}

async function* chunksOf(file: FileHandle, path: string): AsyncGenerator<Uint8Array> {
  for (;;) {
    const buffer = new Uint8Array(chunkBytes);
    const { bytesRead } = await file
      .read(buffer, 0, chunkBytes)
      .catch((cause) => unreadable(path, cause));
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

/** The line that is being read. */
class Line {
  #parts: Uint8Array[] = [];
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  add(part: Uint8Array): void {
    this.#bytes += part.length;
    if (this.#bytes <= lineBytesMax) this.#parts.push(part);
    else this.#parts = [];
  }

  take(): string | null {
    const text = this.#bytes > lineBytesMax ? null : decoded(Buffer.concat(this.#parts));
    this.#parts = [];
    this.#bytes = 0;
    return text;
  }
}

function decoded(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

function unreadable(path: string, cause: NodeJS.ErrnoException): never {
  if (cause.code === "ENOENT") throw new InputError(`${path} does not exist.`);
  if (cause.code === "EISDIR") throw new InputError(`${path} is a folder.`);
  throw new InputError(`${path} can't be read: ${cause.code ?? cause.message}.`);
}

import { CheckpointError } from "../errors.ts";
import { jsonFileBytesMax } from "../limits.ts";

/** Bytes that are read by range: a file, or what stands at a URL. */
export interface ByteSource {
  /** For error messages: a path or an address. */
  readonly name: string;
  /** In bytes. */
  readonly size: number;
  /**
   * Exactly `length` bytes from `offset`, in a buffer of their own.
   *
   * @throws CheckpointError when the range leaves the file, or fewer bytes came
   */
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** A checkpoint's folder. Paths are relative to it, with `/` between their parts. */
export interface Folder {
  readonly name: string;
  has(path: string): Promise<boolean>;
  /** @throws CheckpointError when the file is missing or can't be read */
  open(path: string): Promise<ByteSource>;
  /** A whole file as UTF-8, up to `jsonFileBytesMax`. @throws CheckpointError */
  text(path: string): Promise<string>;
}

/** Refuses a range that leaves the file, before anything is allocated for it. */
export function checkRange(source: ByteSource, offset: number, length: number): void {
  const whole = Number.isSafeInteger(offset) && Number.isSafeInteger(length);
  if (whole && offset >= 0 && length >= 0 && offset + length <= source.size) return;
  throw new CheckpointError(
    source.name,
    `bytes ${offset} to ${offset + length} are wanted, the file is ${source.size} bytes`,
  );
}

/**
 * Refuses a path from a file's contents that could leave the folder, on any system: absolute
 * paths, `..`, backslashes and drive letters.
 */
export function checkRelativePath(file: string, path: string): void {
  const parts = path.split("/");
  const escapes =
    /[\\\0]/.test(path) ||
    /^[A-Za-z]:/.test(path) ||
    parts.some((part) => part === "" || part === "." || part === "..");
  if (escapes) {
    throw new CheckpointError(file, `${JSON.stringify(path)} is not a path inside the folder`);
  }
}

/** Reads a whole source as UTF-8. */
export async function sourceText(source: ByteSource): Promise<string> {
  if (source.size > jsonFileBytesMax) {
    throw new CheckpointError(
      source.name,
      `is ${source.size} bytes; a text file of at most ${jsonFileBytesMax} is read`,
    );
  }
  const bytes = await source.read(0, source.size);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new CheckpointError(source.name, "is not UTF-8 text", cause);
  }
}

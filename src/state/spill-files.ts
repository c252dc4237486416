import type { NewHash } from "./spill-file.ts";

/** A place for files; any call may reject. Names are 32 hex digits. */
export interface SpillFiles {
  /** SHA-256, the fastest that is there. */
  readonly newHash: NewHash;
  /** Least recently used first. What writers that died have left behind is removed. */
  list(): Promise<readonly { readonly name: string; readonly bytes: number }[]>;
  /** A file, or its first `bytesMax` bytes; null where it is gone. */
  read(name: string, bytesMax?: number): Promise<Uint8Array | null>;
  /** Writes a whole file or none, on disk by the time it resolves. One of that name is replaced. */
  write(name: string, parts: Iterable<Uint8Array>): Promise<void>;
  /** Marks a file as used now. One that is gone is passed over, here and by `remove`. */
  touch(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  /** What the disk has left. */
  freeBytes(): Promise<number>;
}

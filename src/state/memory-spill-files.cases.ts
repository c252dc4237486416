import { type NewHash, portableHash } from "./spill-file.ts";
import type { SpillFiles } from "./spill-files.ts";

/** Files in memory, with faults that a test sets and takes back. */
export class MemorySpillFiles implements SpillFiles {
  readonly newHash: NewHash = portableHash;
  /** By name, least recently used first. */
  readonly files: Map<string, Uint8Array> = new Map();
  /** What fits the disk; a write of more rejects. */
  capacity: number = Number.MAX_SAFE_INTEGER;
  /** Calls that reject. */
  readonly failing: Set<Exclude<keyof SpillFiles, "newHash">> = new Set();
  /** Writes leave so many bytes under the final name, and reject. */
  tornAt: number | null = null;
  /** Reads come with this bit wrong. */
  flippedBit: number | null = null;

  async list(): Promise<{ name: string; bytes: number }[]> {
    this.#check("list");
    return Array.from(this.files, ([name, { length }]) => ({ name, bytes: length }));
  }

  async read(
    name: string,
    bytesMax: number = Number.POSITIVE_INFINITY,
  ): Promise<Uint8Array | null> {
    this.#check("read");
    const bytes = this.files.get(name)?.slice(0, bytesMax) ?? null;
    const at = Math.floor((this.flippedBit ?? 0) / 8);
    if (bytes && this.flippedBit !== null) bytes[at]! ^= 1 << (this.flippedBit % 8);
    return bytes;
  }

  async write(name: string, parts: Iterable<Uint8Array>): Promise<void> {
    this.#check("write");
    const bytes = new Uint8Array(Buffer.concat([...parts]));
    const old = this.files.get(name)?.length ?? 0;
    if (bytes.length - old > this.#free()) throw new Error("no space is left");
    this.files.delete(name);
    this.files.set(name, bytes.slice(0, this.tornAt ?? bytes.length));
    if (this.tornAt !== null) throw new Error("the write was cut short");
  }

  async touch(name: string): Promise<void> {
    this.#check("touch");
    const bytes = this.files.get(name);
    if (!bytes) return;
    this.files.delete(name);
    this.files.set(name, bytes);
  }

  async remove(name: string): Promise<void> {
    this.#check("remove");
    this.files.delete(name);
  }

  async freeBytes(): Promise<number> {
    this.#check("freeBytes");
    return this.#free();
  }

  #free(): number {
    let free = this.capacity;
    for (const { length } of this.files.values()) free -= length;
    return free;
  }

  #check(call: Exclude<keyof SpillFiles, "newHash">): void {
    if (this.failing.has(call)) throw new Error(`${call} failed`);
  }
}

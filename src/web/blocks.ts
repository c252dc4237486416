import { type ByteSource, checkRange } from "../checkpoint/source.ts";
import { fetchPart, fetchWhole, type HttpFile } from "./http.ts";

/** Bytes of a request for weights, and of a file in the cache. */
export const blockBytes: number = 8 * 2 ** 20;

/**
 * Blocks that stay in memory. A matrix is read a few rows at a time from three places: its codes, scales
 * and biases.
 */
const recentBlocks = 4;

/** Where blocks outlive the page. */
export interface BlockStore {
  /** Block `index`, which is `length` bytes; null where it isn't there, or not as it was put. */
  get(index: number, length: number): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Never fails: what can't be kept is fetched again. */
  put(index: number, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
}

/** A file behind a URL, read in blocks: from memory, the store, or the server. */
export class BlockSource implements ByteSource {
  readonly name: string;
  readonly size: number;
  readonly #file: HttpFile;
  readonly #store: BlockStore | null;
  readonly #blockBytes: number;
  /** The one used last is the last. */
  readonly #recent = new Map<number, Promise<Uint8Array>>();
  /** The file of a server that sends no parts. */
  #whole: Promise<Uint8Array<ArrayBuffer>> | null = null;

  constructor(file: HttpFile, store: BlockStore | null, bytesPerBlock: number = blockBytes) {
    this.name = file.url;
    this.size = file.size;
    this.#file = file;
    this.#store = store;
    this.#blockBytes = bytesPerBlock;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    checkRange(this, offset, length);
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const at = offset + done;
      const block = await this.#block(Math.floor(at / this.#blockBytes));
      const start = at % this.#blockBytes;
      const part = block.subarray(start, start + length - done);
      bytes.set(part, done);
      done += part.length;
    }
    return bytes;
  }

  async close(): Promise<void> {
    this.#recent.clear();
    this.#whole = null;
  }

  #block(index: number): Promise<Uint8Array> {
    const block = this.#recent.get(index) ?? this.#load(index);
    this.#recent.delete(index);
    this.#recent.set(index, block);
    // Whoever reads hears of a failure, and may read again.
    block.catch(() => this.#recent.delete(index));
    for (const oldest of this.#recent.keys()) {
      if (this.#recent.size <= recentBlocks) break;
      this.#recent.delete(oldest);
    }
    return block;
  }

  async #load(index: number): Promise<Uint8Array> {
    const offset = index * this.#blockBytes;
    const length = Math.min(this.#blockBytes, this.size - offset);
    const stored = await this.#store?.get(index, length);
    if (stored) return stored;
    const bytes = await this.#fetch(offset, length);
    await this.#store?.put(index, bytes);
    return bytes;
  }

  async #fetch(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#file.ranges) return await fetchPart(this.#file, offset, length);
    this.#whole ??= fetchWhole(this.#file).catch((error) => {
      this.#whole = null;
      throw error;
    });
    return (await this.#whole).slice(offset, offset + length);
  }
}

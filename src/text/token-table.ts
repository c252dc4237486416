import type { TokenId } from "../ids.ts";
import { byteAlphabet } from "./byte-alphabet.ts";

const noBytes = new Uint8Array(0);
const utf8 = new TextEncoder();
/** A letter of the byte alphabet, by its code → its byte; -1 for codes that are none. */
const byteOfCode = new Int16Array(0x144).fill(-1);
for (const [letter, byte] of byteAlphabet) byteOfCode[letter.charCodeAt(0)] = byte;

/**
 * Writes the bytes that `token` spells in the byte alphabet, and returns where they end; null where
 * it has a letter that is no byte.
 */
export function spellBytes(token: string, into: Uint8Array, start: number): number | null {
  for (let at = 0; at < token.length; at++) {
    const byte = byteOfCode[token.charCodeAt(at)] ?? -1;
    if (byte < 0) return null;
    into[start + at] = byte;
  }
  return start + token.length;
}

/** The tokens of a byte-level vocabulary: their bytes by id, and their ids by bytes. */
export class TokenTable {
  /** All tokens' bytes, in the order of their ids. */
  readonly #bytes: Uint8Array;
  /** Where those of a token begin; they end where the next one's begin. */
  readonly #starts: Int32Array;
  /** A hash table by bytes, with open addressing: ids, or -1 where a place is free. */
  readonly #places: Int32Array;

  /**
   * @param tokens by their ids, distinct, as the file spells them; undefined for an id without one. A
   *   token that is not in the byte alphabet stands for its own UTF-8, as in the reference tokenizers;
   *   no text becomes it.
   */
  constructor(tokens: readonly (string | undefined)[]) {
    this.#starts = new Int32Array(tokens.length + 1);
    this.#places = new Int32Array(placesFor(tokens.length)).fill(-1);
    // UTF-8 takes up to 3 bytes for a unit of a string.
    this.#bytes = new Uint8Array(3 * tokens.reduce((sum, token) => sum + (token?.length ?? 0), 0));
    let end = 0;
    for (let id = 0; id < tokens.length; id++) {
      const start = end;
      const token = tokens[id] ?? "";
      const spelt = spellBytes(token, this.#bytes, start);
      end = spelt ?? start + utf8.encodeInto(token, this.#bytes.subarray(start)).written;
      this.#starts[id + 1] = end;
      if (token !== "" && spelt !== null) this.#places[this.#place(this.#bytes, start, end)] = id;
    }
    this.#bytes = this.#bytes.slice(0, end);
  }

  /** A token's bytes, not to be changed; none for an id without a token. */
  bytes(id: TokenId): Uint8Array {
    const end = this.#starts[id + 1];
    return end === undefined ? noBytes : this.#bytes.subarray(this.#starts[id], end);
  }

  /** The id of the token with the bytes from `start` to `end`; -1 where there is none. */
  find(bytes: Uint8Array, start: number, end: number): TokenId {
    return this.#places[this.#place(bytes, start, end)]!;
  }

  /** Where the token with these bytes is, or would be. */
  #place(bytes: Uint8Array, start: number, end: number): number {
    const mask = this.#places.length - 1;
    let place = hash(bytes, start, end) & mask;
    for (;;) {
      const id = this.#places[place]!;
      if (id < 0 || this.#has(id, bytes, start, end)) return place;
      place = (place + 1) & mask;
    }
  }

  #has(id: TokenId, bytes: Uint8Array, start: number, end: number): boolean {
    const own = this.#starts[id]!;
    if (this.#starts[id + 1]! - own !== end - start) return false;
    for (let at = start; at < end; at++) {
      if (this.#bytes[own + at - start] !== bytes[at]) return false;
    }
    return true;
  }
}

/** Places of a hash table for `entries`: a power of two, at least half of them free. */
export function placesFor(entries: number): number {
  return 2 ** Math.ceil(Math.log2(2 * entries + 2));
}

/** FNV-1a, its bits mixed once more, since the lowest choose the place. */
function hash(bytes: Uint8Array, start: number, end: number): number {
  let sum = 0x811c9dc5;
  for (let at = start; at < end; at++) sum = Math.imul(sum ^ bytes[at]!, 0x01000193);
  return sum ^ (sum >>> 15);
}

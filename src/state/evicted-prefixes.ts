import type { TokenId } from "../ids.ts";
import { prefixHashes, type TokenPrefix } from "./token-prefix.ts";

/** How many are remembered; each is two numbers. */
const remembered = 1024;

/** Remembers what was evicted, to tell a client why its prompt was computed again. */
export class EvictedPrefixes {
  /** Hashes by rows, the latest last. */
  readonly #seen = new Map<string, true>();

  add({ ids, rows }: TokenPrefix): void {
    let hash = 0;
    for (const next of prefixHashes(ids.slice(0, rows))) hash = next;
    this.#seen.delete(keyOf(rows, hash));
    this.#seen.set(keyOf(rows, hash), true);
    if (this.#seen.size > remembered) this.#seen.delete(this.#seen.keys().next().value!);
  }

  /** Whether `ids` begin with one of them, and go on. */
  holdPrefixOf(ids: readonly TokenId[]): boolean {
    if (this.#seen.size === 0) return false;
    let rows = 0;
    for (const hash of prefixHashes(ids.slice(0, -1))) {
      if (this.#seen.has(keyOf(rows++, hash))) return true;
    }
    return false;
  }
}

const keyOf = (rows: number, hash: number): string => `${rows} ${hash}`;

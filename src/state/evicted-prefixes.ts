import type { TokenId } from "../ids.ts";
import { prefixHashes, type TokenPrefix } from "./token-prefix.ts";

/** How many are remembered; each is a number. */
const remembered = 1024;

/** Remembers what was evicted, to tell a client why its prompt was computed again. */
export class EvictedPrefixes {
  /** Their hashes, the latest last. */
  readonly #seen = new Set<number>();

  add({ ids, rows }: TokenPrefix): void {
    let hash = 0;
    for (const next of prefixHashes(ids.slice(0, rows))) hash = next;
    this.#seen.delete(hash);
    this.#seen.add(hash);
    if (this.#seen.size > remembered) this.#seen.delete(this.#seen.values().next().value!);
  }

  /** Whether `ids` begin with one of them, and go on. */
  holdPrefixOf(ids: readonly TokenId[]): boolean {
    if (this.#seen.size === 0) return false;
    for (const hash of prefixHashes(ids.slice(0, -1))) if (this.#seen.has(hash)) return true;
    return false;
  }
}

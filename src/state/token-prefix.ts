import type { TokenId } from "../ids.ts";

/** The first `rows` of some tokens. */
export interface TokenPrefix {
  readonly ids: readonly TokenId[];
  readonly rows: number;
}

/** Whether `ids` begin with a prefix. The last token is looked at first: conversations part late. */
export function isPrefix({ ids: prefix, rows }: TokenPrefix, ids: readonly TokenId[]): boolean {
  if (rows > ids.length) return false;
  if (prefix === ids) return true;
  for (let at = rows - 1; at >= 0; at--) if (prefix[at] !== ids[at]) return false;
  return true;
}

/** Hashes of every prefix of some tokens, by its length; 52 bits, so that a chance match is none. */
export function* prefixHashes(ids: readonly TokenId[]): Generator<number> {
  let [low, high] = [0x811c9dc5, 0x1b873593];
  yield 0;
  for (const id of ids) {
    low = Math.imul(low ^ id, 0x01000193);
    high = Math.imul(high ^ (id + 0x9e37), 0x85ebca6b) ^ (high >>> 13);
    yield (high >>> 0) * 2 ** 20 + ((low ^ (low >>> 12)) & 0xfffff);
  }
}

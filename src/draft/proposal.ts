import type { TokenId } from "../ids.ts";

/** Who drafts: a stream's own earlier text, or a block drafter. */
export type DrafterName = "copy" | "dflash" | "dflash2";

/** Tokens that may follow the pending one. */
export interface Drafts {
  readonly ids: readonly TokenId[];
  /**
   * By draft, the index in `ids` of the token before it; −1 for a child of the pending token. Parents
   * come before their children. Null: a chain, each draft the child of the one before it.
   */
  readonly parents: readonly number[] | null;
}

/** Drafts that a round verifies. */
export interface Proposal extends Drafts {
  readonly drafter: DrafterName;
}

/**
 * How many drafts are worth verifying, the likeliest first.
 * @param chances that each is right and all before it on its path, as the drafter sees it; falling
 */
export type Worth = (chances: readonly number[]) => number;

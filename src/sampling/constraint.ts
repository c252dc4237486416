import type { TokenId } from "../ids.ts";

/** A set of tokens: bit id % 32 of word ⌊id / 32⌋ is set where token `id` is in it. */
export type TokenSet = Int32Array;

/**
 * What a reply may go on with, by the tokens it has: one reply's own. Like all of a draw, it knows
 * committed tokens alone, never drafts.
 */
export interface DrawConstraint {
  /** Whether `allowed` ever gives a set. Draws then need whole rows. */
  readonly narrows: boolean;
  /** The token that comes next whatever the row says; null where none is forced. */
  forced(): TokenId | null;
  /** The tokens that may come next, at least one, until the next commit; null: any may. */
  allowed(): TokenSet | null;
  /** A token that the reply has from now on. */
  commit(id: TokenId): void;
  /** Where drafts begin. Looking ahead moves nothing here. */
  ahead(): LookAhead;
}

/**
 * A place behind committed tokens and drafts. It tells drafts that can't be drawn from others, of which
 * some can't be drawn either: a draw alone decides.
 */
export interface LookAhead {
  /** Where one more token leads; null: no draw would take it here. */
  after(id: TokenId): LookAhead | null;
}

/** Any token may follow, and any behind that. */
export const anythingAhead: LookAhead = { after: () => anythingAhead };

/** All tokens but some, of a vocabulary of so many. */
export function allTokensBut(ids: Iterable<TokenId>, vocabSize: number): TokenSet {
  const set = new Int32Array(Math.ceil(vocabSize / 32)).fill(-1);
  for (const id of ids) set[id >>> 5]! &= ~(1 << (id & 31));
  return set;
}

/** Whether a set has a token. */
export const hasToken = (set: TokenSet, id: TokenId): boolean =>
  ((set[id >>> 5]! >>> (id & 31)) & 1) === 1;

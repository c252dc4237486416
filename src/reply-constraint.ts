import type { TokenId } from "./ids.ts";
import type { DrawConstraint, TokenSet } from "./sampling/constraint.ts";

/** How a think block is counted and closed. */
export interface ThinkBlock {
  /** The token of its closing tag. */
  readonly closingId: TokenId;
  /** That of a call's opening tag, which ends it too; null where calls are text. */
  readonly callId: TokenId | null;
  /** Tokens of it, behind which it is closed; null: as many as the model takes. */
  readonly budget: number | null;
  /** The text that closes it and comes before the content. */
  readonly closing: readonly TokenId[];
  /** The text between the closing tag and the content. */
  readonly between: readonly TokenId[];
  /** What may come within it where a form has to follow: all but what ends it otherwise, or a reply. */
  readonly goesOn: TokenSet;
}

/** What holds a reply to a form. */
export interface ReplyForm {
  /** What must come next for the form to be whole with the last token; null: any allowed. */
  forced(tokensLeft: number): TokenId | null;
  allowed(tokensLeft: number): TokenSet;
  commit(id: TokenId): void;
}

/**
 * Closes a reply's think block where it has had its tokens, and holds what is behind it to a form,
 * which ends before the reply's tokens do.
 */
export class ReplyConstraint implements DrawConstraint {
  readonly narrows: boolean;
  readonly #form: ReplyForm | null;
  /** Null behind it, or where there is none. */
  #block: ThinkBlock | null;
  #thought = 0;
  #tokensLeft: number;
  /** What comes next, up to the content. */
  #forced: readonly TokenId[] = [];

  /**
   * @param block null where the reply doesn't begin in one
   * @param maxTokens of the reply, its think block among them
   */
  constructor(block: ThinkBlock | null, form: ReplyForm | null, maxTokens: number) {
    this.#tokensLeft = maxTokens;
    this.#block = block;
    this.#form = form;
    this.narrows = form !== null;
    this.#closeIfSpent();
  }

  forced(): TokenId | null {
    const [next] = this.#forced;
    if (next !== undefined) return next;
    return this.#block || !this.#form ? null : this.#form.forced(this.#tokensLeft);
  }

  allowed(): TokenSet | null {
    if (!this.#form) return null;
    return this.#block ? this.#block.goesOn : this.#form.allowed(this.#tokensLeft);
  }

  commit(id: TokenId): void {
    this.#tokensLeft--;
    if (this.#forced.length > 0) {
      this.#forced = this.#forced.slice(1);
      if (this.#forced.length === 0) this.#block = null;
    } else if (!this.#block) {
      this.#form?.commit(id);
    } else if (id === this.#block.closingId) {
      // A form begins where templates have content begin.
      if (this.#form) this.#forced = this.#block.between;
      if (this.#forced.length === 0) this.#block = null;
    } else if (id === this.#block.callId) {
      this.#block = null;
    } else {
      this.#thought++;
      this.#closeIfSpent();
    }
  }

  #closeIfSpent(): void {
    const { budget, closing } = this.#block ?? { budget: null, closing: [] };
    if (budget !== null && this.#thought >= budget) this.#forced = closing;
  }
}

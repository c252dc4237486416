import type { TokenId } from "./ids.ts";
import {
  anythingAhead,
  type DrawConstraint,
  hasToken,
  type LookAhead,
  type TokenSet,
} from "./sampling/constraint.ts";

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
  ahead(): LookAhead;
}

/**
 * Closes a reply's think block where it has had its tokens, and holds what is behind it to a form,
 * which ends before the reply's tokens do.
 */
export class ReplyConstraint implements DrawConstraint {
  readonly narrows: boolean;
  readonly #form: ReplyForm | null;
  /** Null behind the think block, or where there is none. */
  #place: BlockPlace | null;
  #tokensLeft: number;

  /**
   * @param block null where the reply doesn't begin in one
   * @param maxTokens of the reply, its think block among them
   */
  constructor(block: ThinkBlock | null, form: ReplyForm | null, maxTokens: number) {
    this.#tokensLeft = maxTokens;
    this.#place = block && BlockPlace.within(block, form !== null, 0);
    this.#form = form;
    this.narrows = form !== null;
  }

  forced(): TokenId | null {
    if (this.#place) return this.#place.forced;
    return this.#form?.forced(this.#tokensLeft) ?? null;
  }

  allowed(): TokenSet | null {
    if (this.#place) return this.#place.allowed;
    return this.#form?.allowed(this.#tokensLeft) ?? null;
  }

  commit(id: TokenId): void {
    this.#tokensLeft--;
    if (this.#place) this.#place = this.#place.after(id);
    else this.#form?.commit(id);
  }

  ahead(): LookAhead {
    const content = () => this.#form?.ahead() ?? anythingAhead;
    return this.#place ? blockAhead(this.#place, content) : content();
  }
}

/** @param content where the block leads */
function blockAhead(place: BlockPlace, content: () => LookAhead): LookAhead {
  return {
    after: (id) => {
      if (!place.takes(id)) return null;
      const next = place.after(id);
      return next ? blockAhead(next, content) : content();
    },
  };
}

/** A place in a think block, before its content begins. */
class BlockPlace {
  readonly #block: ThinkBlock;
  readonly #formFollows: boolean;
  readonly #thought: number;
  /** What comes next, up to the content. */
  readonly #rest: readonly TokenId[];

  private constructor(
    block: ThinkBlock,
    formFollows: boolean,
    thought: number,
    rest: readonly TokenId[],
  ) {
    this.#block = block;
    this.#formFollows = formFollows;
    this.#thought = thought;
    this.#rest = rest;
  }

  /** Behind so many tokens of the block. */
  static within(block: ThinkBlock, formFollows: boolean, thought: number): BlockPlace {
    const { budget, closing } = block;
    const spent = budget !== null && thought >= budget;
    return new BlockPlace(block, formFollows, thought, spent ? closing : []);
  }

  get forced(): TokenId | null {
    return this.#rest[0] ?? null;
  }

  get allowed(): TokenSet | null {
    return this.#formFollows ? this.#block.goesOn : null;
  }

  takes(id: TokenId): boolean {
    if (this.forced !== null) return id === this.forced;
    return this.allowed === null || hasToken(this.allowed, id);
  }

  /** Where a token leads; null: the content begins. */
  after(id: TokenId): BlockPlace | null {
    const { closingId, callId, between } = this.#block;
    if (this.#rest.length > 0) return this.#before(this.#rest.slice(1));
    // A form begins where templates have content begin.
    if (id === closingId) return this.#before(this.#formFollows ? between : []);
    if (id === callId) return null;
    return BlockPlace.within(this.#block, this.#formFollows, this.#thought + 1);
  }

  #before(rest: readonly TokenId[]): BlockPlace | null {
    if (rest.length === 0) return null;
    return new BlockPlace(this.#block, this.#formFollows, this.#thought, rest);
  }
}

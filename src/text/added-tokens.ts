import type { TokenId } from "../ids.ts";

/** A token that stands beside the vocabulary: text is cut at it before all else. */
export interface AddedToken {
  readonly id: TokenId;
  readonly content: string;
  /** A control token, which is left out where only text is wanted. */
  readonly special: boolean;
  /** Looked for in composed text rather than in the text as it came. */
  readonly normalized: boolean;
}

/** Finds added tokens in text. */
export class AddedTokens {
  readonly #ids: ReadonlyMap<string, TokenId>;
  readonly #pattern: RegExp | null;

  constructor(tokens: readonly AddedToken[]) {
    this.#ids = new Map(tokens.map(({ content, id }) => [content, id]));
    // Of two tokens that begin alike, the longer is tried first: it wins in the reference tokenizers.
    const contents = [...this.#ids.keys()].sort((a, b) => b.length - a.length);
    const escaped = contents.map((content) => content.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    this.#pattern = escaped.length > 0 ? new RegExp(`(${escaped.join("|")})`) : null;
  }

  /** The text in pieces, none empty: added tokens, and what is between them. */
  cut(text: string): string[] {
    const pieces = this.#pattern === null ? [text] : text.split(this.#pattern);
    return pieces.filter((piece) => piece !== "");
  }

  /** The id of a piece that is an added token. */
  idOf(piece: string): TokenId | undefined {
    return this.#ids.get(piece);
  }
}

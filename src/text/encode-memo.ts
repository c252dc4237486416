import type { AddedToken } from "@huggingface/tokenizers";
import type { TokenId } from "../ids.ts";

/** About a million tokens of text, in the characters of `string.length`. */
const memoCharsMax = 4_194_304;
/** What an entry takes beside its text, as characters, so that many short ones are bounded too. */
const entryChars = 64;

interface Entry {
  readonly text: string;
  readonly ids: readonly TokenId[];
}

/**
 * Matches the added tokens, where a tokenizer cuts a text before all else: what stands between two
 * is encoded as if it stood alone. Null where there are none, or where one of them takes the spaces
 * beside it, looks at what is beside it, or is looked for in normalised text.
 */
export function addedTokenPattern(tokens: Iterable<AddedToken>): RegExp | null {
  const contents: string[] = [];
  for (const { content, lstrip, rstrip, single_word: word, normalized } of tokens) {
    if (lstrip || rstrip || word || normalized) return null;
    if (content !== "") contents.push(content);
  }
  if (contents.length === 0) return null;
  // Of two tokens that begin alike, the longer is tried first: it wins in a tokenizer.
  contents.sort((a, b) => b.length - a.length);
  const escaped = contents.map((content) => content.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`(${escaped.join("|")})`);
}

/**
 * Encodes texts piece by piece and remembers the pieces, because the prompts of a conversation
 * repeat what was said before. Forgets those used longest ago.
 */
export class EncodeMemo {
  readonly #encode: (text: string) => TokenId[];
  readonly #cut: RegExp | null;
  readonly #charsMax: number;
  readonly #entries = new Map<string, Entry>();
  #chars = 0;

  /**
   * @param encode what is remembered.
   * @param cut matches, in one group, what texts are cut at: `encode` must give for a text what it
   *   gives for its pieces, joined. Null: a text is one piece.
   * @param charsMax characters of all pieces remembered, with some for each piece itself.
   */
  constructor(
    encode: (text: string) => TokenId[],
    cut: RegExp | null,
    charsMax: number = memoCharsMax,
  ) {
    this.#encode = encode;
    this.#cut = cut;
    this.#charsMax = charsMax;
  }

  /** A text's tokens, in an array of the caller's own. */
  encode(text: string): TokenId[] {
    const ids: TokenId[] = [];
    for (const piece of this.#cut === null ? [text] : text.split(this.#cut)) {
      if (piece === "") continue;
      for (const id of this.#idsOf(piece)) ids.push(id);
    }
    return ids;
  }

  #idsOf(piece: string): readonly TokenId[] {
    const known = this.#entries.get(piece);
    if (known === undefined) return this.#remember(piece, this.#encode(piece));
    // Set again, it is the last of the map's order.
    this.#entries.delete(known.text);
    this.#entries.set(known.text, known);
    return known.ids;
  }

  #remember(piece: string, ids: readonly TokenId[]): readonly TokenId[] {
    const chars = piece.length + entryChars;
    if (chars > this.#charsMax) return ids;
    for (const oldest of this.#entries.keys()) {
      if (this.#chars + chars <= this.#charsMax) break;
      this.#entries.delete(oldest);
      this.#chars -= oldest.length + entryChars;
    }
    // A copy through JSON: a piece is a slice, which would keep the whole text in memory.
    const text: string = JSON.parse(JSON.stringify(piece));
    this.#entries.set(text, { text, ids });
    this.#chars += chars;
    return ids;
  }
}

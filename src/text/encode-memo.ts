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
 * Remembers the tokens of pieces of text, because the prompts of a conversation repeat what was said
 * before. Forgets those used longest ago.
 */
export class EncodeMemo {
  readonly #charsMax: number;
  readonly #entries = new Map<string, Entry>();
  #chars = 0;

  /** @param charsMax characters of all pieces remembered, with some for each piece itself */
  constructor(charsMax: number = memoCharsMax) {
    this.#charsMax = charsMax;
  }

  /** The tokens of a piece, if it is remembered. */
  idsOf(piece: string): readonly TokenId[] | undefined {
    const known = this.#entries.get(piece);
    if (known === undefined) return undefined;
    // Set again, it is the last of the map's order.
    this.#entries.delete(known.text);
    this.#entries.set(known.text, known);
    return known.ids;
  }

  /** @param ids not to be changed any more */
  remember(piece: string, ids: readonly TokenId[]): void {
    const chars = piece.length + entryChars;
    if (chars > this.#charsMax || this.#entries.has(piece)) return;
    for (const oldest of this.#entries.keys()) {
      if (this.#chars + chars <= this.#charsMax) break;
      this.#entries.delete(oldest);
      this.#chars -= oldest.length + entryChars;
    }
    // A copy through JSON: a piece is a slice, which would keep the whole text in memory.
    const text: string = JSON.parse(JSON.stringify(piece));
    this.#entries.set(text, { text, ids });
    this.#chars += chars;
  }
}

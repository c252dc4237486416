import { nextTask } from "../clock.ts";
import { InputError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { turnCharacters } from "../limits.ts";
import { type AddedToken, AddedTokens } from "./added-tokens.ts";
import { compose } from "./compose.ts";
import { EncodeMemo } from "./encode-memo.ts";
import type { Merges } from "./merges.ts";
import { WordMerge } from "./word-merge.ts";

/** Words of up to so many bytes are merged in the same memory, one after the other. */
const shortBytesMax = 4096;

const utf8 = new TextEncoder();

/** How a tokenizer.json says that text becomes ids. */
export interface Encoding {
  readonly added: readonly AddedToken[];
  /** Whether text is brought into composed form (NFC). */
  readonly composed: boolean;
  /** Matches words; has the flag g. What is between two matches is a word too. */
  readonly words: RegExp;
  readonly merges: Merges;
  /** The token of each byte, 256. */
  readonly byteIds: Int32Array;
}

/** Turns text into ids. */
export class Encoder {
  readonly #encoding: Encoding;
  readonly #verbatim: AddedTokens;
  readonly #normalized: AddedTokens;
  readonly #memo = new EncodeMemo();
  readonly #shortWord: WordMerge;
  readonly #shortBytes = new Uint8Array(shortBytesMax);

  constructor(encoding: Encoding) {
    this.#encoding = encoding;
    const { added, merges, byteIds } = encoding;
    this.#verbatim = new AddedTokens(added.filter(({ normalized }) => !normalized));
    const normalized = added.filter((token) => token.normalized);
    this.#normalized = new AddedTokens(
      normalized.map((token) => ({ ...token, content: this.#composed(token.content) })),
    );
    this.#shortWord = new WordMerge(merges, byteIds, shortBytesMax);
  }

  /** @throws InputError for a word of millions of characters, where no regex can match it */
  encode(text: string): TokenId[] {
    const ids: TokenId[] = [];
    const steps = this.#steps(text, ids);
    while (steps.next().done !== true);
    return ids;
  }

  /** The same, with turns for others in between; a second time it takes no more than a moment. */
  async encodeInTurns(text: string): Promise<TokenId[]> {
    const ids: TokenId[] = [];
    let done = 0;
    for (const work of this.#steps(text, ids)) {
      done += work;
      if (done < turnCharacters) continue;
      await nextTask();
      done = 0;
    }
    return ids;
  }

  /** Appends a text's ids to `ids`, and yields after each step how much work it was, in characters. */
  *#steps(text: string, ids: TokenId[]): Generator<number, void> {
    for (const piece of this.#verbatim.cut(text)) {
      const known = this.#memo.idsOf(piece) ?? (yield* this.#pieceIds(piece));
      this.#memo.remember(piece, known);
      for (const id of known) ids.push(id);
      yield 1;
    }
  }

  *#pieceIds(piece: string): Generator<number, readonly TokenId[]> {
    const added = this.#verbatim.idOf(piece);
    if (added !== undefined) return [added];
    const ids: TokenId[] = [];
    try {
      for (const section of this.#normalized.cut(this.#composed(piece))) {
        const own = this.#normalized.idOf(section);
        if (own === undefined) yield* this.#wordIds(section, ids);
        else ids.push(own);
      }
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause;
      // V8's regexes have a stack of 64 MiB: 4 million letters in a row are too many.
      throw new InputError(
        "The text has a word of millions of characters, which can't be encoded.",
      );
    }
    return ids;
  }

  *#wordIds(text: string, ids: TokenId[]): Generator<number, void> {
    for (const word of wordsOf(text, this.#encoding.words)) {
      const merge = this.#loaded(word);
      // A short word is done in its first turn, so that no other is loaded in between.
      while (!merge.run(turnCharacters)) yield turnCharacters;
      merge.write(ids);
      yield word.length;
    }
  }

  /** Half of a surrogate pair is U+FFFD. */
  #loaded(word: string): WordMerge {
    const { read, written } = utf8.encodeInto(word, this.#shortBytes);
    if (read === word.length) {
      this.#shortWord.load(this.#shortBytes, written);
      return this.#shortWord;
    }
    const bytes = utf8.encode(word);
    const { merges, byteIds } = this.#encoding;
    const merge = new WordMerge(merges, byteIds, bytes.length);
    merge.load(bytes, bytes.length);
    return merge;
  }

  #composed(text: string): string {
    return this.#encoding.composed ? compose(text) : text;
  }
}

function* wordsOf(text: string, pattern: RegExp): Generator<string, void> {
  let end = 0;
  for (const { 0: match, index } of text.matchAll(pattern)) {
    if (index > end) yield text.slice(end, index);
    if (match !== "") yield match;
    end = index + match.length;
  }
  if (end < text.length) yield text.slice(end);
}

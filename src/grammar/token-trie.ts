import { nextTask } from "../clock.ts";
import type { TokenId } from "../ids.ts";
import type { TokenSet } from "../sampling/constraint.ts";
import { Detokenizer } from "../text/detokenize.ts";
import type { Tokenizer } from "../text/tokenizer.ts";

/** Tokens that are looked at before others have their turn. */
const tokensATurn = 8192;

interface Spelling {
  readonly id: TokenId;
  /** A letter a byte. */
  readonly letters: string;
}

/**
 * The tokens that are text, by their bytes. Node 0 is the empty beginning; any other is one byte more
 * than the node it hangs from, which stands before it and all that goes on from there.
 */
export class TokenTrie {
  readonly bytes: Uint8Array;
  readonly depths: Uint16Array;
  /** Behind each node and all that goes on from it. */
  readonly ends: Int32Array;
  /** Bytes of the longest token. */
  readonly depthMax: number;
  /** A node's tokens are `ids` from `firsts[node]` to before `firsts[node + 1]`. */
  readonly firsts: Int32Array;
  readonly ids: Int32Array;
  /** All of these. */
  readonly tokens: TokenSet;

  private constructor({ bytes, depths, firsts, ids }: TrieLists, vocabSize: number) {
    this.bytes = Uint8Array.from(bytes);
    this.depths = Uint16Array.from(depths);
    this.ends = endsOf(this.depths);
    this.depthMax = this.depths.reduce((most, depth) => Math.max(most, depth), 0);
    this.firsts = Int32Array.from([...firsts, ids.length]);
    this.ids = Int32Array.from(ids);
    this.tokens = new Int32Array(Math.ceil(vocabSize / 32));
    for (const id of ids) this.tokens[id >>> 5]! |= 1 << (id & 31);
  }

  /** @param excluded tokens that are no text here, beside those that never are */
  static async of(tokenizer: Tokenizer, excluded: ReadonlySet<TokenId>): Promise<TokenTrie> {
    /** By their first byte, so that no turn is long. */
    const tokens = Array.from({ length: 256 }, (): Spelling[] => []);
    for (let id = 0; id < tokenizer.vocabSize; id++) {
      if (id % tokensATurn === 0) await nextTask();
      const letters = excluded.has(id) ? "" : lettersOf(tokenizer, id);
      if (letters !== "") tokens[letters.charCodeAt(0)]!.push({ id, letters });
    }
    const lists = new TrieLists();
    let turn = 0;
    for (const some of tokens) {
      some.sort((a, b) => (a.letters < b.letters ? -1 : a.letters > b.letters ? 1 : a.id - b.id));
      for (const token of some) lists.add(token);
      turn += some.length;
      if (turn < tokensATurn) continue;
      await nextTask();
      turn = 0;
    }
    return new TokenTrie(lists, tokenizer.vocabSize);
  }
}

/** A trie as it grows, by tokens in the order of their letters. */
class TrieLists {
  readonly bytes: number[] = [0];
  readonly depths: number[] = [0];
  readonly firsts: number[] = [0];
  readonly ids: TokenId[] = [];
  #before = "";

  add({ id, letters }: Spelling): void {
    const before = this.#before;
    let shared = 0;
    while (shared < before.length && before[shared] === letters[shared]) shared++;
    for (let depth = shared; depth < letters.length; depth++) {
      this.bytes.push(letters.charCodeAt(depth));
      this.depths.push(depth + 1);
      this.firsts.push(this.ids.length);
    }
    this.ids.push(id);
    this.#before = letters;
  }
}

/** A special token is text where a reply's text has it. */
function lettersOf(tokenizer: Tokenizer, id: TokenId): string {
  if (tokenizer.isSpecial(id)) {
    const shown = new Detokenizer(tokenizer, { skipSpecial: true });
    if (shown.push(id) + shown.flush() === "") return "";
  }
  return String.fromCharCode(...tokenizer.tokenBytes(id));
}

function endsOf(depths: Uint16Array): Int32Array {
  const ends = new Int32Array(depths.length);
  for (let node = depths.length - 1; node >= 0; node--) {
    let end = node + 1;
    while (end < depths.length && depths[end]! > depths[node]!) end = ends[end]!;
    ends[node] = end;
  }
  return ends;
}

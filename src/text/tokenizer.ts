import type { TokenId } from "../ids.ts";
import type { AddedToken } from "./added-tokens.ts";
import { Encoder } from "./encoder.ts";
import { spellBytes, type TokenTable } from "./token-table.ts";
import { readTokenizerFile, type TokenizerFile } from "./tokenizer-file.ts";

const utf8 = new TextEncoder();

/** Strings to ids and back for a byte-level BPE vocabulary (tokenizer.json of the model hub). */
export class Tokenizer {
  /** One more than the highest id that has a token; the model's own vocabulary may be padded. */
  readonly vocabSize: number;
  readonly #table: TokenTable;
  readonly #added: ReadonlyMap<TokenId, AddedToken & { readonly bytes: Uint8Array }>;
  readonly #addedIds: ReadonlyMap<string, TokenId>;
  readonly #encoder: Encoder;

  private constructor({ table, encoding, vocabSize }: TokenizerFile) {
    this.vocabSize = vocabSize;
    this.#table = table;
    this.#added = new Map(
      encoding.added.map((token) => [token.id, { ...token, bytes: utf8.encode(token.content) }]),
    );
    this.#addedIds = new Map(encoding.added.map(({ content, id }) => [content, id]));
    this.#encoder = new Encoder(encoding);
  }

  /**
   * @param tokenizerJson the text of tokenizer.json, at `fileName`.
   * @param tokenizerConfigJson the text of tokenizer_config.json beside it, if there is one.
   * @throws CheckpointError naming the file that is malformed or of another kind.
   */
  static fromJson(
    tokenizerJson: string,
    tokenizerConfigJson: string | null,
    fileName: string,
  ): Tokenizer {
    return new Tokenizer(readTokenizerFile(tokenizerJson, tokenizerConfigJson, fileName));
  }

  /**
   * Adds no special tokens of its own; those written in the text are recognised.
   * @throws InputError for a word of millions of characters
   */
  encode(text: string): TokenId[] {
    return this.#encoder.encode(text);
  }

  /**
   * The same ids, with turns of the event loop in between. Pieces between added tokens are
   * remembered, so that `encode` has the same text or a longer one at once afterwards.
   * @throws InputError for a word of millions of characters
   */
  encodeInTurns(text: string): Promise<TokenId[]> {
    return this.#encoder.encodeInTurns(text);
  }

  /** Keeps special tokens; ill-formed bytes become U+FFFD; ids without a token are silent. */
  decode(ids: readonly TokenId[]): string {
    const tokens = ids.map((id) => this.tokenBytes(id));
    const bytes = new Uint8Array(tokens.reduce((sum, { length }) => sum + length, 0));
    let end = 0;
    for (const token of tokens) {
      bytes.set(token, end);
      end += token.length;
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }

  /** A token's exact bytes, not to be changed; empty for an id of the padding, which has none. */
  tokenBytes(id: TokenId): Uint8Array {
    return this.#added.get(id)?.bytes ?? this.#table.bytes(id);
  }

  /** Whether the checkpoint flags the token as special. */
  isSpecial(id: TokenId): boolean {
    return this.#added.get(id)?.special ?? false;
  }

  /** The id of a token as the vocabulary spells it, such as `<|im_end|>`. */
  idOf(token: string): TokenId | undefined {
    const added = this.#addedIds.get(token);
    if (added !== undefined) return added;
    const bytes = new Uint8Array(token.length);
    const end = spellBytes(token, bytes, 0);
    const id = end === null ? -1 : this.#table.find(bytes, 0, end);
    return id < 0 ? undefined : id;
  }
}

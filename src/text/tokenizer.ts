import { Tokenizer as HubTokenizer } from "@huggingface/tokenizers";
import { parseJsonRecord } from "../checkpoint/json.ts";
import { CheckpointError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { isRecord } from "../json.ts";
import { byteAlphabet } from "./byte-alphabet.ts";
import { addedTokenPattern, EncodeMemo } from "./encode-memo.ts";

const noBytes = new Uint8Array(0);

/** Strings to ids and back for a byte-level BPE vocabulary (tokenizer.json of the model hub). */
export class Tokenizer {
  /** One more than the highest id that has a token; the model's own vocabulary may be padded. */
  readonly vocabSize: number;
  readonly #hub: HubTokenizer;
  readonly #added: ReadonlyMap<TokenId, { readonly content: string; readonly special: boolean }>;
  readonly #bytes = new Map<TokenId, Uint8Array>();
  readonly #memo: EncodeMemo;

  private constructor(hub: HubTokenizer, vocabSize: number) {
    this.#hub = hub;
    this.#added = hub.get_added_tokens_decoder();
    this.vocabSize = vocabSize;
    const encode = (text: string) => hub.encode(text, { add_special_tokens: false }).ids;
    this.#memo = new EncodeMemo(encode, addedTokenPattern(hub.get_added_tokens_decoder().values()));
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
    const description = parseJsonRecord(fileName, tokenizerJson);
    const configFile = fileName.replace(/[^/\\]*$/, "tokenizer_config.json");
    const config = tokenizerConfigJson ? parseJsonRecord(configFile, tokenizerConfigJson) : {};
    const vocabSize = checkedVocabSize(description, fileName);
    try {
      return new Tokenizer(new HubTokenizer(description, config), vocabSize);
    } catch (cause) {
      const detail = cause instanceof Error ? cause.message : String(cause);
      throw new CheckpointError(fileName, `not a usable tokenizer: ${detail}`, cause);
    }
  }

  /** Adds no special tokens of its own; those written in the text are recognised. */
  encode(text: string): TokenId[] {
    return this.#memo.encode(text);
  }

  /** Keeps special tokens; ill-formed bytes become U+FFFD; ids without a token are silent. */
  decode(ids: readonly TokenId[]): string {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    const pieces = ids.map((id) => decoder.decode(this.tokenBytes(id), { stream: true }));
    return pieces.join("") + decoder.decode();
  }

  /** A token's exact bytes, not to be changed; empty for an id of the padding, which has none. */
  tokenBytes(id: TokenId): Uint8Array {
    const known = this.#bytes.get(id);
    if (known !== undefined) return known;
    const token = this.#hub.id_to_token(id);
    if (token === undefined) return noBytes;
    const bytes = this.#added.has(id) ? new TextEncoder().encode(token) : bpeBytes(token);
    this.#bytes.set(id, bytes);
    return bytes;
  }

  /** Whether the checkpoint flags the token as special. */
  isSpecial(id: TokenId): boolean {
    return this.#added.get(id)?.special ?? false;
  }

  /** The id of a token as the vocabulary spells it, such as `<|im_end|>`. */
  idOf(token: string): TokenId | undefined {
    return this.#hub.token_to_id(token);
  }
}

/** A token outside the byte alphabet stands for its own UTF-8, as in the reference tokenizers. */
function bpeBytes(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = byteAlphabet.get(token[i]!);
    if (byte === undefined) return new TextEncoder().encode(token);
    bytes[i] = byte;
  }
  return bytes;
}

/** Checks what the byte-level rules above rely on, and the ids. */
function checkedVocabSize(description: Record<string, unknown>, fileName: string): number {
  const { model, decoder, added_tokens: added } = description;
  const { type: modelType, vocab } = isRecord(model) ? model : {};
  if (modelType !== "BPE" || !isRecord(vocab)) {
    throw new CheckpointError(fileName, 'model.type is not "BPE" with a vocab');
  }
  const { type: decoderType } = isRecord(decoder) ? decoder : {};
  if (decoderType !== "ByteLevel") {
    throw new CheckpointError(fileName, 'decoder.type is not "ByteLevel"');
  }
  if (!Array.isArray(added)) throw new CheckpointError(fileName, "added_tokens is not a list");
  for (const letter of byteAlphabet.keys()) {
    if (!Object.hasOwn(vocab, letter)) {
      throw new CheckpointError(fileName, `model.vocab lacks the byte token ${letter}`);
    }
  }
  let size = 0;
  const count = (token: string, id: unknown) => {
    if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 0) {
      throw new CheckpointError(fileName, `token ${JSON.stringify(token)} has the id ${id}`);
    }
    size = Math.max(size, id + 1);
  };
  for (const [token, id] of Object.entries(vocab)) count(token, id);
  for (const token of added) {
    const { content, id } = isRecord(token) ? token : {};
    if (typeof content !== "string") {
      throw new CheckpointError(fileName, "an added token has no content");
    }
    count(content, id);
  }
  return size;
}

import type { GgufMetadata } from "./metadata.ts";

/** Kinds of tokens (llama.cpp, `llama_token_type`). The others stand for no text: padding is unused, 5. */
const normalToken = 1;
const controlToken = 3;
const userToken = 4;

/** How text is cut before the merges, by the name that files give it. */
const splitPatterns: ReadonlyMap<string, string> = new Map([
  [
    "qwen35",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  ],
]);

/**
 * The files that a tokenizer is read from, by name: tokenizer.json, tokenizer_config.json, and the
 * template where there is one.
 *
 * @throws CheckpointError for another tokenizer than byte-level BPE as these models have it
 */
export function tokenizerFiles(metadata: GgufMetadata): ReadonlyMap<string, string> {
  const files = new Map([
    ["tokenizer.json", JSON.stringify(tokenizerOf(metadata))],
    ["tokenizer_config.json", JSON.stringify(tokenizerConfigOf(metadata), null, 2)],
  ]);
  const template = metadata.optionalString("tokenizer.chat_template");
  if (template !== undefined) files.set("chat_template.jinja", template);
  return files;
}

function tokenizerOf(metadata: GgufMetadata): unknown {
  const model = metadata.string("tokenizer.ggml.model");
  if (model !== "gpt2") metadata.fail("tokenizer.ggml.model", "only gpt2 is read", model);
  const pre = metadata.string("tokenizer.ggml.pre");
  const known = `only ${[...splitPatterns.keys()].join(", ")} is read`;
  const pattern = splitPatterns.get(pre) ?? metadata.fail("tokenizer.ggml.pre", known, pre);
  const tokens = metadata.strings("tokenizer.ggml.tokens");
  const kinds = metadata.numbers("tokenizer.ggml.token_type");
  const entries = tokens.map((content, id) => ({ content, id, kind: kinds[id] }));
  const added = entries.filter(({ kind }) => kind === controlToken || kind === userToken);
  const plain = entries.filter(({ kind }) => kind === normalToken);
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added.map(({ content, id, kind }) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: kind === controlToken,
    })),
    normalizer: { type: "NFC" },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false },
        { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: "",
      end_of_word_suffix: "",
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(plain.map(({ content, id }) => [content, id])),
      merges: metadata.strings("tokenizer.ggml.merges"),
    },
  };
}

function tokenizerConfigOf(metadata: GgufMetadata): unknown {
  const tokens = metadata.strings("tokenizer.ggml.tokens");
  const tokenOf = (kind: string) => {
    const id = metadata.optionalNumber(`tokenizer.ggml.${kind}_token_id`);
    return id === undefined ? null : (tokens[id] ?? null);
  };
  return {
    tokenizer_class: "PreTrainedTokenizerFast",
    add_bos_token: false,
    bos_token: null,
    eos_token: tokenOf("eos"),
    pad_token: tokenOf("padding"),
    unk_token: null,
    clean_up_tokenization_spaces: false,
  };
}

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import type { TokenId } from "../ids.ts";
import { byteAlphabet } from "./byte-alphabet.ts";

const fixtures = new URL("../../fixtures/qwen3/", import.meta.url);

/** Split regexes: \p{M} goes with letters since Qwen3.5. */
const patterns = {
  "3":
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" +
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  "3.5":
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}" +
    "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
};

const controls = "endoftext im_start im_end object_ref_start object_ref_end box_start box_end ";
const vision = "quad_start quad_end vision_start vision_end vision_pad image_pad video_pad";
const fill = "fim_prefix fim_middle fim_suffix fim_pad repo_name file_sep";
const barred = (names: string) => names.split(" ").map((name) => `<|${name}|>`);
const calls = ["<tool_call>", "</tool_call>"];
const marks = ["<tool_response>", "</tool_response>", "<think>", "</think>"];
const audio = ["<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>"];

/** Added tokens in the order of their ids, and whether each is special. */
const added: readonly (readonly [string, boolean])[] = [
  ...barred(controls + vision).map((content) => [content, true] as const),
  ...[...calls, ...barred(fill), ...marks].map((content) => [content, false] as const),
  ...[...audio, "<tts_text_bos_single>", "<|audio_pad|>"].map(
    (content) => [content, true] as const,
  ),
];

export type Generation = "3" | "3.5";
const addedCounts = { "3": 26, "3.5": 33 };

/**
 * A Qwen tokenizer.json: Qwen3's as it is published, or its vocabulary with the pre-tokenizer and the
 * added tokens of 3.5, whose own vocabulary is larger (../shared/spec/model.md, 6.1).
 */
export function qwenTokenizer(generation: Generation): Record<string, unknown> {
  const lines = brotliDecompressSync(readFileSync(new URL("merges.txt.br", fixtures))).toString();
  const merges = lines.split("\n").map((line) => line.split(" "));
  const tokens = [...[...byteAlphabet.keys()].sort(), ...merges.map((pair) => pair.join(""))];
  const plain = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  const bytes = {
    type: "ByteLevel",
    add_prefix_space: false,
    trim_offsets: false,
    use_regex: false,
  };
  const pattern = { Regex: patterns[generation] };
  const split = { type: "Split", pattern, behavior: "Isolated", invert: false };
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added.slice(0, addedCounts[generation]).map(([content, special], index) => {
      return { id: tokens.length + index, content, ...plain, special };
    }),
    normalizer: { type: "NFC" },
    pre_tokenizer: { type: "Sequence", pretokenizers: [split, bytes] },
    post_processor: bytes,
    decoder: bytes,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: "",
      end_of_word_suffix: "",
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges,
    },
  };
}

/** Ids of a text that is too long to write them down: how many, and a hash of them. */
export interface IdsDigest {
  readonly count: number;
  /** The first 12 hex digits of the SHA-256 of the ids in decimal, joined by commas. */
  readonly sha: string;
}

/** What the reference gives; see fixtures/qwen3/README.md. */
export interface QwenGolden {
  readonly texts: readonly (Readonly<Record<Generation, TokenId[]>> & { readonly text: string })[];
  readonly runs: readonly (Readonly<Record<Generation, IdsDigest>> & {
    readonly unit: string;
    /** `unit` is repeated so often. */
    readonly times: number;
  })[];
}

export const qwenGolden = (): QwenGolden =>
  JSON.parse(readFileSync(new URL("tokens.json", fixtures), "utf8"));

export function digestOf(ids: readonly TokenId[]): IdsDigest {
  const sha = createHash("sha256").update(ids.join(",")).digest("hex").slice(0, 12);
  return { count: ids.length, sha };
}

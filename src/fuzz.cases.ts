import { openCheckpoint } from "./checkpoint/checkpoint.ts";
import { type Files, memorySource, safetensorsFile, tinyConfig } from "./checkpoint/files.cases.ts";
import { type ByteSource, type Folder, sourceText } from "./checkpoint/source.ts";
import { CheckpointError } from "./errors.ts";
import { byteAlphabet } from "./text/byte-alphabet.ts";
import { Tokenizer } from "./text/tokenizer.ts";
import { weightsFromCheckpoint } from "./weights/from-checkpoint.ts";
import { ggufFile, ggufTensors, metadataOf } from "./weights/gguf/files.cases.ts";
import { openGgufModel } from "./weights/gguf/model.ts";
import { hash32 } from "./weights/hash32.ts";
import { tinyTensors } from "./weights/tiny.cases.ts";

/** Numbers below a bound. */
export type Random = (below: number) => number;

/** A file of some kind, changed. */
export interface ChangedFile {
  /** Of all that is opened. */
  readonly bytes: number;
  /** @throws CheckpointError unless the change did no harm */
  open(): Promise<unknown>;
}

export const seed = 7;

/** The numbers of a run. */
export function randomOf(run: number): Random {
  let drawn = 0;
  return (below) => hash32(hash32(seed, run), drawn++) % below;
}

/** Numbers that headers go wrong at. */
const sizes = [
  "0",
  "-1",
  "1.5",
  "1e9",
  "4294967296",
  "4194303",
  "9007199254740993",
  "1e400",
  "null",
  '"4"',
];
const words = ["{", "}", "[", "]", '"', ",", ":", "\\u0000", "\\ud800", "__proto__", "true", "{}"];

/** Text with up to three numbers, words, pieces or letters changed. */
function mutatedText(text: string, random: Random): string {
  let made = text;
  for (let change = random(4); change > 0; change--) {
    const at = random(made.length);
    const [head, tail] = [made.slice(0, at), made.slice(at)];
    const size = sizes[random(sizes.length)]!;
    const word = words[random(words.length)]!;
    const piece = made.slice(at, at + random(40));
    const kinds = [
      () => head + tail.replace(/\d+/, size),
      () => head + tail.replace(/"[^"]*"/, `"${word}"`),
      () => head + tail.replace(/:[^,{}]+/, `:${size}`),
      () => head + word + tail,
      () => head + piece + tail,
      () => head + tail.slice(random(40)),
      () => head + String.fromCharCode(random(0x3000)) + tail.slice(1),
    ];
    made = kinds[random(kinds.length)]!();
  }
  return made;
}

/** Bytes with up to three changed, put in, left out, or set to what lengths and counts go wrong at. */
function mutatedBytes(bytes: Uint8Array, random: Random, within: number): Uint8Array {
  let made = Buffer.from(bytes);
  for (let change = random(4); change > 0; change--) {
    const at = random(Math.min(within, made.length - 8));
    const kinds = [
      () => made.writeUInt8(random(256), at),
      () => made.writeUInt32LE(random(2 ** 32), at),
      () => made.writeBigUInt64LE(2n ** BigInt(random(64)) - BigInt(random(2)), at),
      () => {
        made = Buffer.concat([made.subarray(0, at), made.subarray(at + 1 + random(16))]);
      },
      () => {
        made = Buffer.concat([made.subarray(0, at), made.subarray(random(at + 1))]);
      },
    ];
    kinds[random(kinds.length)]!();
  }
  return new Uint8Array(made);
}

/** A source that counts what is read of it. */
export class Reads {
  bytes = 0;

  source(name: string, content: Uint8Array): ByteSource {
    const own = memorySource(name, content);
    return {
      ...own,
      read: (offset, length) => {
        this.bytes += length;
        return own.read(offset, length);
      },
    };
  }

  folder(files: Files): Folder {
    const open = async (path: string) => {
      const content = files.get(path);
      if (content === undefined) throw new CheckpointError(`mem/${path}`, "does not exist");
      const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
      return this.source(`mem/${path}`, bytes);
    };
    const text = async (path: string) => sourceText(await open(path));
    return { name: "mem", has: async (path) => files.has(path), open, text };
  }
}

const config = tinyConfig();
const tensors = await tinyTensors(config);
const weights = safetensorsFile(tensors);
const headerBytes = Number(new DataView(weights.buffer).getBigUint64(0, true));
const [first, second] = [tensors.slice(0, 9), tensors.slice(9)];
const index = JSON.stringify({
  metadata: { total_size: 1 },
  weight_map: Object.fromEntries([
    ...first.map(({ name }) => [name, "a.safetensors"]),
    ...second.map(({ name }) => [name, "b.safetensors"]),
  ]),
});
const quantized = { ...config, quantization: { bits: 4, group_size: 64, "model.norm": false } };
const configs = [config, quantized, { model_type: "qwen3_5", text_config: config }].map((each) =>
  JSON.stringify(each),
);
const generation = JSON.stringify({ eos_token_id: [1, 2], temperature: 0.7, top_k: 20 });
const vocabulary = { texts: ["a", "b", "<|im_end|>"], kinds: [1, 1, 3] };
const ggufParts = ggufTensors(tensors, config, ({ data }) => ({ type: 30, data }));
const gguf = ggufFile(metadataOf(config, vocabulary, ["a b"]), ggufParts);
const ggufHeadBytes =
  gguf.length - ggufParts.reduce((sum, { data }) => sum + 32 * Math.ceil(data.length / 32), 0);

const whole = () =>
  new Map<string, Uint8Array | string>([
    ["config.json", configs[0]!],
    ["model.safetensors", weights],
  ]);

async function openFiles(files: Files, reads: Reads): Promise<void> {
  await using checkpoint = await openCheckpoint(reads.folder(files));
  await weightsFromCheckpoint(checkpoint);
}

const filesOf = (reads: Reads, files: Files, bytes = weights.length): ChangedFile => ({
  bytes,
  open: () => openFiles(files, reads),
});

const byteTokens = [...byteAlphabet.keys()];
const letters = ["a", "b", "c", "ab", "bc", "abc", "\u0120a", "\u0120ab"];
const pattern =
  "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const tokenizer = JSON.stringify({
  added_tokens: [
    { id: 300, content: "<|im_end|>", special: true, normalized: false },
    { id: 301, content: "<think>", special: false },
  ],
  normalizer: { type: "NFC" },
  pre_tokenizer: {
    type: "Sequence",
    pretokenizers: [
      { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false },
      { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
    ],
  },
  decoder: { type: "ByteLevel" },
  model: {
    type: "BPE",
    vocab: Object.fromEntries(
      [...new Set([...byteTokens, ...letters])].map((token, id) => [token, id]),
    ),
    merges: ["a b", ["b", "c"], "ab c", "\u0120 a", "\u0120a b"],
  },
});
const tokenizerConfig = JSON.stringify({
  added_tokens_decoder: { 302: { content: "<tool_call>", special: false } },
});
const sample = "a\u0301bc abc <think> 12 'S\n\n\ud800 <|im_end|>";

/** Each makes a file of its kind. */
export const kinds: Readonly<Record<string, (random: Random, reads: Reads) => ChangedFile>> = {
  "headers of safetensors": (random, reads) => {
    const json = Buffer.from(weights.subarray(8, 8 + headerBytes)).toString();
    const header = new TextEncoder().encode(mutatedText(json, random));
    const length = new Uint8Array(8);
    new DataView(length.buffer).setBigUint64(0, BigInt(header.length), true);
    const file = Buffer.concat([length, header, weights.subarray(8 + headerBytes)]);
    const made =
      random(2) === 0 ? new Uint8Array(file) : mutatedBytes(weights, random, headerBytes);
    return filesOf(reads, whole().set("model.safetensors", made), made.length);
  },
  configs: (random, reads) => {
    const text = configs[random(configs.length)]!;
    const files = whole()
      .set("config.json", mutatedText(text, random))
      .set("generation_config.json", mutatedText(generation, random));
    return filesOf(reads, files);
  },
  indexes: (random, reads) => {
    const files = whole()
      .set("a.safetensors", safetensorsFile(first))
      .set("b.safetensors", safetensorsFile(second))
      .set("model.safetensors.index.json", mutatedText(index, random));
    return filesOf(reads, files);
  },
  "heads of GGUF files": (random, reads) => {
    const file = mutatedBytes(gguf, random, ggufHeadBytes);
    return { bytes: file.length, open: () => openGgufModel(reads.source("x.gguf", file)) };
  },
  tokenizers: (random) => {
    const json = mutatedText(tokenizer, random);
    const config = random(2) === 0 ? null : mutatedText(tokenizerConfig, random);
    const open = async () => {
      const made = Tokenizer.fromJson(json, config, "x/tokenizer.json");
      for (const id of made.encode(sample)) made.tokenBytes(id);
    };
    return { bytes: json.length + (config?.length ?? 0), open };
  },
};

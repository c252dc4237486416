import { describe, expect, it } from "vitest";
import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import {
  type Files,
  memorySource,
  safetensorsFile,
  tinyConfig,
} from "../checkpoint/files.cases.ts";
import { type ByteSource, type Folder, sourceText } from "../checkpoint/source.ts";
import { CheckpointError } from "../errors.ts";
import { weightsFromCheckpoint } from "./from-checkpoint.ts";
import { ggufFile, ggufTensors, metadataOf } from "./gguf/files.cases.ts";
import { openGgufModel } from "./gguf/model.ts";
import { hash32 } from "./hash32.ts";
import { tinyTensors } from "./tiny.cases.ts";

/** Of each of the four kinds of file: 10,000 in all. */
const runs = 2500;
/** What one may ask of its files in all, times their size, and besides: a parser reads ahead and again. */
const readsMax = 4;
const readsBesides = 4096;

const seed = 7;

/** A sequence of numbers below any bound. */
function randomOf(run: number): (below: number) => number {
  let drawn = 0;
  return (below) => hash32(hash32(seed, run), drawn++) % below;
}

/** Numbers that headers go wrong at. */
const sizes = ["0", "-1", "1.5", "1e9", "4294967296", "9007199254740993", "1e400", "null", '"4"'];
const words = ["{", "}", "[", "]", '"', ",", ":", "\\u0000", "\\ud800", "__proto__", "true", "{}"];

/** Text with up to three numbers, words, pieces or letters changed. */
function mutatedText(text: string, random: (below: number) => number): string {
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
function mutatedBytes(
  bytes: Uint8Array,
  random: (below: number) => number,
  within: number,
): Uint8Array {
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
class Reads {
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

/** Opens one changed file after another: each is refused with a typed error, or opens. */
async function fuzz(
  name: string,
  open: (random: (below: number) => number, reads: Reads) => Promise<number>,
): Promise<void> {
  let refused = 0;
  for (let run = 0; run < runs; run++) {
    const reads = new Reads();
    const outcome = open(randomOf(run), reads).catch((error: unknown) => {
      if (!(error instanceof CheckpointError)) throw error;
      refused++;
      return Number.NaN;
    });
    const size = await outcome.catch((cause) => {
      throw new Error(`${name}: run ${run} of seed ${seed}`, { cause });
    });
    const most = readsMax * (Number.isNaN(size) ? weights.length : size) + readsBesides;
    expect(reads.bytes, `${name}: bytes read by run ${run} of seed ${seed}`).toBeLessThan(most);
  }
  // The changes are neither harmless nor hopeless.
  expect(refused).toBeGreaterThan(runs / 10);
  expect(refused).toBeLessThan(runs);
}

describe(`${runs} changed files give a typed error or a model`, () => {
  it("headers of safetensors", () =>
    fuzz("header", async (random, reads) => {
      const json = Buffer.from(weights.subarray(8, 8 + headerBytes)).toString();
      const header = new TextEncoder().encode(mutatedText(json, random));
      const length = new Uint8Array(8);
      new DataView(length.buffer).setBigUint64(0, BigInt(header.length), true);
      const file = Buffer.concat([length, header, weights.subarray(8 + headerBytes)]);
      const made =
        random(2) === 0 ? new Uint8Array(file) : mutatedBytes(weights, random, headerBytes);
      await openFiles(whole().set("model.safetensors", made), reads);
      return made.length;
    }));

  it("configs", () =>
    fuzz("config", async (random, reads) => {
      const files = whole();
      const text = configs[random(configs.length)]!;
      files.set("config.json", mutatedText(text, random));
      files.set("generation_config.json", mutatedText(generation, random));
      await openFiles(files, reads);
      return weights.length;
    }));

  it("indexes", () =>
    fuzz("index", async (random, reads) => {
      const files = whole()
        .set("a.safetensors", safetensorsFile(first))
        .set("b.safetensors", safetensorsFile(second))
        .set("model.safetensors.index.json", mutatedText(index, random));
      await openFiles(files, reads);
      return weights.length;
    }));

  it("heads of GGUF files", () =>
    fuzz("gguf", async (random, reads) => {
      const file = mutatedBytes(gguf, random, ggufHeadBytes);
      await openGgufModel(reads.source("x.gguf", file));
      return file.length;
    }));
});

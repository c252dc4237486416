import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openCheckpoint } from "../../checkpoint/checkpoint.ts";
import {
  memoryFolder,
  memorySource,
  type RawTensor,
  tinyConfig,
} from "../../checkpoint/files.cases.ts";
import { openFolder } from "../../checkpoint/source-node.ts";
import { openTensors } from "../../checkpoint/tensors.ts";
import { CheckpointError } from "../../errors.ts";
import { convertInto } from "../convert.ts";
import { convertCheckpoint } from "../convert-node.ts";
import { bytesOf, f16FromF32, f32FromF16, widen } from "../floats.ts";
import { weightsFromCheckpoint } from "../from-checkpoint.ts";
import { createOutputFolder } from "../output-node.ts";
import { tinyFiles, tinyTensors } from "../tiny.cases.ts";
import { type GgufRaw, ggufFile, ggufTensors, type Metadata, metadataOf } from "./files.cases.ts";
import { openGgufModel } from "./model.ts";

const format = { bits: 4, groupSize: 64 } as const;
const tokens = { texts: ["a", "b", "<|im_end|>", "[PAD3]"], kinds: [1, 1, 3, 5] };
/** Three value heads for each key head, so that their order shows. */
const config = { ...tinyConfig(), linear_num_value_heads: 6 };
const original = await tinyTensors(config);

const bf16 = ({ data }: RawTensor) => ({ type: 30, data });
const f32 = ({ data }: RawTensor) => ({ type: 0, data: bytesOf(widen(data, "bf16")) });

/** Blocks of 32: an f16 scale of the largest value, and its multiples. */
function q8({ data }: RawTensor): { type: number; data: Uint8Array } {
  const values = widen(data, "bf16");
  const blocks = new Uint8Array((values.length / 32) * 34);
  for (let block = 0; block < values.length / 32; block++) {
    const own = values.subarray(32 * block, 32 * block + 32);
    const scale = f16FromF32(Math.max(...own.map(Math.abs)) / 127);
    blocks.set([scale & 255, scale >> 8], 34 * block);
    const codes = Int8Array.from(own, (value) => Math.round(value / f32FromF16(scale)));
    blocks.set(new Uint8Array(codes.buffer), 34 * block + 2);
  }
  return { type: 8, data: blocks };
}

let root = "";
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "deltafold-gguf-"));
});
afterAll(() => rm(root, { recursive: true }));

const tensorsOf = (encode = bf16) => ggufTensors(original, config, encode);
interface Content {
  readonly dtype: string;
  readonly data: Uint8Array;
}

/** Every tensor of a folder by name. */
async function contents(path: string): Promise<Map<string, Content>> {
  const files = await openTensors(await openFolder(path));
  const all = new Map<string, Content>();
  for (const [name, { dtype, bytes, read }] of files.tensors) {
    all.set(name, { dtype, data: await read(0, bytes) });
  }
  await files.close();
  return all;
}

const floats = ({ dtype, data }: Content) => widen(data, dtype === "F32" ? "f32" : "bf16");

/** All bytes must be equal, but where an exponential and its logarithm may have rounded. */
function expectEqual(made: Map<string, Content>, expected: Map<string, Content>): void {
  expect([...made.keys()].sort()).toEqual([...expected.keys()].sort());
  for (const [name, theirs] of expected) {
    const own = made.get(name) ?? { dtype: "", data: new Uint8Array(0) };
    if (name.endsWith("A_log")) {
      const values = floats(theirs);
      const error = Math.max(...floats(own).map((value, i) => Math.abs(value - values[i]!)));
      expect(error).toBeLessThan(1e-6);
    } else {
      expect(Buffer.compare(own.data, theirs.data), name).toBe(0);
    }
  }
}

describe("a GGUF file as a source", () => {
  it.each([
    ["BF16", bf16],
    ["F32", f32],
  ])("of %s becomes what the Hugging Face checkpoint becomes", async (kind, encode) => {
    const file = ggufFile(metadataOf(config, tokens), tensorsOf(encode));
    const [from, to] = [join(root, `hf-${kind}`), join(root, `gguf-${kind}`)];
    await convertInto(
      memoryFolder(tinyFiles(original, config)),
      await createOutputFolder(from),
      format,
    );
    await convertInto(memorySource("x.gguf", file), await createOutputFolder(to), format);
    expectEqual(await contents(to), await contents(from));
    const { dtype, ...made } = JSON.parse(await readFile(join(to, "config.json"), "utf8"));
    expect(made).toMatchObject({
      model_type: "qwen3_5_text",
      rms_norm_eps: 1e-6,
      eos_token_id: [2],
      tie_word_embeddings: false,
      quantization: { bits: 4, group_size: 64 },
    });
    await using checkpoint = await openCheckpoint(await openFolder(to));
    await using source = await openCheckpoint(memoryFolder(tinyFiles(original, config)));
    expect(checkpoint.config.shape).toEqual(source.config.shape);
    await weightsFromCheckpoint(checkpoint);
  });

  it("of Q8_0 has its values, heads and columns in the model's order", async () => {
    const file = ggufFile(metadataOf(config, tokens), tensorsOf(q8));
    const model = await openGgufModel(memorySource("x.gguf", file));
    await using checkpoint = await openCheckpoint(memoryFolder(tinyFiles(original, config)));
    const weights = await weightsFromCheckpoint(checkpoint);
    for (const name of ["in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b", "out_proj"]) {
      const path = `layers.0.linear_attn.${name}`;
      const [made, own] = [model.matrix(path), weights.matrix(path)];
      if (made.kind !== "dense" || own.kind !== "dense") throw new Error(path);
      const values = widen(await made.read(0, made.rows), "f32");
      const expected = widen(await own.read(0, own.rows), "bf16");
      const error = Math.max(...values.map((value, i) => Math.abs(value - expected[i]!)));
      expect(error).toBeLessThan(Math.max(...expected) / 100);
      const part = await made.read(1, 3);
      expect(widen(part, "f32")).toEqual(values.slice(made.cols, 4 * made.cols));
    }
  });

  it("leaves draft heads alone, and is tied without a head", async () => {
    const draft = {
      name: "blk.2.nextn.eh_proj.weight",
      type: 99,
      shape: [4],
      data: new Uint8Array(4),
    };
    const keys = metadataOf(config, tokens)
      .set("qwen35.block_count", { u32: 3 })
      .set("qwen35.nextn_predict_layers", { u32: 1 });
    const headless = tensorsOf().filter(({ name }) => name !== "output.weight");
    const model = await openGgufModel(memorySource("x", ggufFile(keys, [...headless, draft])));
    expect(model.shape).toMatchObject({ tiedHead: true, layerTypes: ["linear", "full"] });
  });

  const keys = (): ReturnType<typeof metadataOf> => metadataOf(config, tokens);
  const changed = (name: string, change: Partial<GgufRaw>) =>
    tensorsOf().map((tensor) => (tensor.name === name ? { ...tensor, ...change } : tensor));
  const without = (key: string) => {
    const left = keys();
    left.delete(key);
    return left;
  };
  const up = "blk.0.ffn_up.weight";
  it.each<[string, Metadata, readonly GgufRaw[], RegExp]>([
    [
      "a type that is not read",
      keys(),
      changed(up, { type: 13 }),
      /ffn_up\.weight: type Q5_K is not read/,
    ],
    [
      "a type that nobody knows",
      keys(),
      changed(up, { type: 99 }),
      /ffn_up\.weight: type 99 is not read/,
    ],
    [
      "a wrong shape",
      keys(),
      changed(up, { shape: [64, 128] }),
      /shape \[64, 128\], expected \[128, 64\]/,
    ],
    [
      "columns that blocks don't divide",
      keys(),
      changed(up, { type: 12 }),
      /Q4_K needs 256 columns, it has 64/,
    ],
    [
      "a missing tensor",
      keys(),
      tensorsOf().filter(({ name }) => name !== up),
      /has no tensor blk\.0\.ffn_up/,
    ],
    ["a missing embedding", keys(), [], /has no tensor token_embd\.weight/],
    [
      "a tensor without a place",
      keys(),
      [...tensorsOf(), { name: "blk.0.ffn_up.bias", type: 0, shape: [1], data: new Uint8Array(4) }],
      /blk\.0\.ffn_up\.bias has no place/,
    ],
    [
      "a tensor twice",
      keys(),
      [...tensorsOf(), ...tensorsOf()],
      /has the tensor token_embd\.weight twice/,
    ],
    [
      "another architecture",
      keys().set("general.architecture", { text: "llama" }),
      tensorsOf(),
      /general\.architecture: only qwen35 is read, found "llama"/,
    ],
    [
      "a missing key",
      without("qwen35.ssm.state_size"),
      tensorsOf(),
      /has no qwen35\.ssm\.state_size/,
    ],
    [
      "a key of another type",
      keys().set("qwen35.embedding_length", { text: "64" }),
      tensorsOf(),
      /qwen35\.embedding_length: must be a number, found "64"/,
    ],
    [
      "a size that makes no sense",
      keys().set("qwen35.block_count", { u64: 2n ** 53n - 1n }),
      tensorsOf(),
      /num_hidden_layers/,
    ],
    [
      "one part of several",
      keys().set("split.count", { u32: 4 }),
      tensorsOf(),
      /is one of 4 parts; join them with llama-gguf-split --merge/,
    ],
    [
      "an alignment that is none",
      keys().set("general.alignment", { u32: 24 }),
      tensorsOf(),
      /general\.alignment must be a power of two up to 65536, found 24/,
    ],
    [
      "another tokenizer",
      keys().set("tokenizer.ggml.model", { text: "llama" }),
      tensorsOf(),
      /tokenizer\.ggml\.model: only gpt2 is read, found "llama"/,
    ],
    [
      "another way to cut text",
      keys().set("tokenizer.ggml.pre", { text: "qwen2" }),
      tensorsOf(),
      /tokenizer\.ggml\.pre: only qwen35 is read, found "qwen2"/,
    ],
    ["no tokens", without("tokenizer.ggml.tokens"), tensorsOf(), /has no tokenizer\.ggml\.tokens/],
  ])("is refused for %s", async (_, meta, tensors, message) => {
    const error = await openGgufModel(memorySource("x.gguf", ggufFile(meta, tensors))).catch(
      (caught) => caught,
    );
    expect(error).toBeInstanceOf(CheckpointError);
    expect(error.message).toMatch(message);
    expect(error.message).toContain("x.gguf");
  });

  it("is refused for a decay that is no −exp", async () => {
    const zeros = { data: new Uint8Array(24) };
    const file = ggufFile(keys(), changed("blk.0.ssm_a", zeros));
    const output = await createOutputFolder(join(root, "decay"));
    await expect(convertInto(memorySource("x", file), output, format)).rejects.toThrow(
      /tensor blk\.0\.ssm_a holds what is no −exp of a number/,
    );
    expect(existsSync(join(root, "decay"))).toBe(false);
  });

  it.each([
    ["is empty", () => new Uint8Array(0), /is no GGUF file/],
    ["is no GGUF", () => new Uint8Array(100), /is no GGUF file/],
    ["is of another version", (file: Uint8Array) => file.with(4, 4), /is GGUF of version 4/],
    ["is big-endian", (file: Uint8Array) => file.with(4, 0).with(7, 3), /is GGUF of version/],
    ["ends in its header", (file: Uint8Array) => file.slice(0, 900), /cut off|can be read/],
    ["ends in a tensor", (file: Uint8Array) => file.slice(0, -64), /cut off/],
    ["names too many tensors", (file: Uint8Array) => file.with(11, 1), /at most 100000 are read/],
  ])("is refused when it %s", async (_, change, message) => {
    const file = change(ggufFile(keys(), tensorsOf()));
    const error = await openGgufModel(memorySource("x.gguf", file)).catch((caught) => caught);
    expect(error).toBeInstanceOf(CheckpointError);
    expect(error.message).toMatch(message);
  });
});

const nano = join(import.meta.dirname, "../../../../shared/models/nano");
describe.skipIf(!existsSync(nano))("with the originals in ../shared/models", () => {
  it("makes models/nano of a GGUF file of it", async () => {
    const files = await openTensors(await openFolder(nano));
    const tensors: RawTensor[] = [];
    for (const { name, dtype, shape, bytes, read } of files.tensors.values()) {
      tensors.push({ name, dtype, shape, data: await read(0, bytes) });
    }
    await files.close();
    const own: Record<string, unknown> = JSON.parse(
      await readFile(join(nano, "config.json"), "utf8"),
    );
    const path = join(root, "nano.gguf");
    await writeFile(path, ggufFile(metadataOf(own, tokens), ggufTensors(tensors, own, bf16)));
    await convertCheckpoint(path, join(root, "nano"), format);
    const shipped = await contents(join(import.meta.dirname, "../../../models/nano"));
    expectEqual(await contents(join(root, "nano")), shipped);
  });
});

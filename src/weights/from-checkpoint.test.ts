import { describe, expect, it } from "vitest";
import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { memoryFolder, type RawTensor, tinyConfig } from "../checkpoint/files.cases.ts";
import { CheckpointError } from "../errors.ts";
import { type AffineFormat, dequantizeRows } from "./affine.ts";
import { bytesOf, narrowToBf16, widen } from "./floats.ts";
import { weightsFromCheckpoint } from "./from-checkpoint.ts";
import { quantizeGroups } from "./quantize.cases.ts";
import { tinyFiles, tinyTensors } from "./tiny.cases.ts";
import type { Weights } from "./weights.ts";

const load = async (tensors: readonly RawTensor[], config: object = tinyConfig()) =>
  weightsFromCheckpoint(await openCheckpoint(memoryFolder(tinyFiles(tensors, config))));

const original = await tinyTensors();
const up = "model.layers.0.mlp.up_proj";

const without = (name: string) => original.filter((tensor) => tensor.name !== name);
const changed = (name: string, change: Partial<RawTensor>) =>
  original.map((tensor) => (tensor.name === name ? { ...tensor, ...change } : tensor));

/** The original with one matrix quantised; `scaleType` is what scales and biases are stored in. */
function quantised(format: AffineFormat, scaleType: "BF16" | "F32" = "BF16"): RawTensor[] {
  const weight = original.find((tensor) => tensor.name === `${up}.weight`)!;
  const [rows = 0, cols = 0] = weight.shape;
  const made = quantizeGroups(widen(weight.data, "bf16"), format);
  const part = (name: string, bits: Uint16Array): RawTensor => ({
    name: `${up}.${name}`,
    dtype: scaleType,
    shape: [rows, cols / format.groupSize],
    data: scaleType === "BF16" ? bytesOf(bits) : bytesOf(widen(bytesOf(bits), "bf16")),
  });
  return [
    ...without(`${up}.weight`),
    {
      name: `${up}.weight`,
      dtype: "U32",
      shape: [rows, (cols * format.bits) / 32],
      data: made.codes,
    },
    part("scales", made.scales),
    part("biases", made.biases),
  ];
}

const withQuantization = (quantization: object) => ({ ...tinyConfig(), quantization });

async function upValues(weights: Weights): Promise<Float32Array> {
  const matrix = weights.matrix("layers.0.mlp.up_proj");
  if (matrix.kind === "dense") return widen(await matrix.read(0, matrix.rows), matrix.dtype);
  return dequantizeRows(await matrix.read(0, matrix.rows), matrix);
}

describe("weightsFromCheckpoint", () => {
  it("shifts the five zero-centred families of a Hugging Face file and nothing else", async () => {
    const weights = await load(original);
    const stored = (name: string) =>
      widen(original.find((tensor) => tensor.name === `model.${name}`)!.data, "bf16");
    for (const path of [
      "norm",
      "layers.0.input_layernorm",
      "layers.1.post_attention_layernorm",
      "layers.1.self_attn.q_norm",
      "layers.1.self_attn.k_norm",
    ]) {
      const expected = stored(`${path}.weight`).map((value) => 1 + value);
      expect(await weights.vector(path)).toEqual(expected);
    }
    const mixer = "layers.0.linear_attn";
    expect(await weights.vector(`${mixer}.norm`)).toEqual(stored(`${mixer}.norm.weight`));
    expect(await weights.vector(`${mixer}.conv1d`)).toEqual(stored(`${mixer}.conv1d.weight`));
    expect((await weights.vector(`${mixer}.A_log`)).length).toBe(4);
  });

  it("takes norms as stored from an MLX file, told by its convolution", async () => {
    const conv = "model.layers.0.linear_attn.conv1d.weight";
    const mlx = await load(changed(conv, { shape: [128, 4, 1] }));
    const hf = await load(original);
    const shifted = (await mlx.vector("norm")).map((value) => 1 + value);
    expect(await hf.vector("norm")).toEqual(shifted);
    const path = "layers.0.linear_attn.conv1d";
    expect(await mlx.vector(path)).toEqual(await hf.vector(path));
    expect(mlx.fingerprint).not.toBe(hf.fingerprint);
  });

  it.each([2, 3, 4, 5, 6, 8] as const)("reads %i-bit modules in every group", async (bits) => {
    const floats = await upValues(await load(original));
    for (const groupSize of [32, 64] as const) {
      for (const scaleType of ["BF16", "F32"] as const) {
        const tensors = quantised({ bits, groupSize }, scaleType);
        const config = withQuantization({
          bits: 4,
          group_size: 64,
          [up]: { bits, group_size: groupSize },
        });
        const weights = await load(tensors, config);
        expect(weights.matrix("layers.0.mlp.up_proj")).toMatchObject({ bits, groupSize });
        const values = await upValues(weights);
        const error = Math.max(...values.map((value, i) => Math.abs(value - floats[i]!)));
        expect(error).toBeLessThan(1.2 / (2 ** bits - 1));
        const rows = weights.matrix("layers.0.mlp.up_proj");
        if (rows.kind !== "affine") throw new Error("not affine");
        const part = dequantizeRows(await rows.read(5, 2), rows);
        expect(part).toEqual(values.slice(5 * 64, 7 * 64));
      }
    }
  });

  it("gives a tied model its embedding as head, and ignores a head in the file", async () => {
    const weights = await load(original, { ...tinyConfig(), tie_word_embeddings: true });
    expect(weights.matrix("lm_head")).toBe(weights.matrix("embed_tokens"));
  });

  it("reads f16 and f32 matrices", async () => {
    const weight = original.find((tensor) => tensor.name === `${up}.weight`)!;
    const wide = bytesOf(widen(weight.data, "bf16"));
    const weights = await load(changed(`${up}.weight`, { dtype: "F32", data: wide }));
    expect(await upValues(weights)).toEqual(await upValues(await load(original)));
    const half = await load(changed(`${up}.weight`, { dtype: "F16" }));
    expect(half.matrix("layers.0.mlp.up_proj")).toMatchObject({ dtype: "f16" });
  });

  it("has a fingerprint that samples the values", async () => {
    const norm = bytesOf(narrowToBf16(new Float32Array(64)));
    const other = await load(changed("model.norm.weight", { data: norm }));
    const { fingerprint } = await load(original);
    expect(other.fingerprint).not.toBe(fingerprint);
    expect((await load(original)).fingerprint).toBe(fingerprint);
  });

  const bits4 = { bits: 4, group_size: 64 };
  const ready = quantised({ bits: 4, groupSize: 64 });
  it.each<[string, RawTensor[], object, RegExp]>([
    ["a missing matrix", without(`${up}.weight`), {}, /no tensor layers\.0\.mlp\.up_proj\.weight/],
    ["a missing vector", without("model.norm.weight"), {}, /has no tensor norm\.weight/],
    ["a missing head", without("lm_head.weight"), {}, /has no tensor lm_head\.weight/],
    [
      "a wrong shape",
      changed(`${up}.weight`, { shape: [64, 128] }),
      {},
      /up_proj\.weight: shape \[64, 128\], expected \[128, 64\]/,
    ],
    [
      "a wrong vector",
      changed("model.norm.weight", { shape: [2, 32] }),
      {},
      /norm\.weight: shape \[2, 32\], expected \[64\]/,
    ],
    ["a wrong dtype", changed(`${up}.weight`, { dtype: "I16" }), {}, /dtype I16, expected BF16/],
    [
      "a tensor without a place",
      [...original, { name: `${up}.bias`, dtype: "BF16", shape: [1], data: new Uint8Array(2) }],
      {},
      /tensor model\.layers\.0\.mlp\.up_proj\.bias has no place/,
    ],
    ["scales without a config", ready, {}, /has no quantization, but layers\.0\.mlp\.up_proj/],
    [
      "codes without scales",
      ready.filter((tensor) => !tensor.name.endsWith("scales")),
      { quantization: bits4 },
      /up_proj\.weight is packed, but has no scales/,
    ],
    [
      "codes without biases",
      ready.filter((tensor) => !tensor.name.endsWith("biases")),
      { quantization: bits4 },
      /has no tensor layers\.0\.mlp\.up_proj\.biases/,
    ],
    [
      "a width that disagrees with the columns",
      ready,
      { quantization: { bits: 8, group_size: 64 } },
      /up_proj\.weight: shape \[128, 8\], expected \[128, 16\]/,
    ],
    [
      "a group that disagrees with the columns",
      ready,
      { quantization: { bits: 4, group_size: 32 } },
      /up_proj\.scales: shape \[128, 1\], expected \[128, 2\]/,
    ],
    [
      "a group that does not divide",
      ready,
      { quantization: { bits: 4, group_size: 128 } },
      /group_size: 128 does not divide the 64 columns of layers\.0\.mlp\.up_proj/,
    ],
    [
      "a width unknown",
      ready,
      { quantization: { bits: 7, group_size: 64 } },
      /7 bits in groups of 64/,
    ],
    [
      "mxfp4 scales",
      ready.map((tensor) =>
        tensor.name.endsWith("scales") ? { ...tensor, dtype: "U8", shape: [128, 2] } : tensor,
      ),
      { quantization: bits4 },
      /scales is U8 \(mxfp4/,
    ],
  ])("refuses %s", async (_, tensors, change, message) => {
    const error = await load(tensors, { ...tinyConfig(), ...change }).catch((caught) => caught);
    expect(error).toBeInstanceOf(CheckpointError);
    expect(error.message).toMatch(message);
  });
});

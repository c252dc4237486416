import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { memoryFolder, type RawTensor, tinyConfig } from "../checkpoint/files.cases.ts";
import type { Folder } from "../checkpoint/source.ts";
import { openFolder } from "../checkpoint/source-node.ts";
import { openTensors } from "../checkpoint/tensors.ts";
import { InputError } from "../errors.ts";
import { dequantizeRows } from "./affine.ts";
import { type ConvertOptions, convertInto, describeConversion } from "./convert.ts";
import { bytesOf, f16FromF32, widen } from "./floats.ts";
import { fp8Tensors } from "./fp8.cases.ts";
import { weightsFromCheckpoint } from "./from-checkpoint.ts";
import { createOutputFolder } from "./output-node.ts";
import { quantizeGroups } from "./quantize.cases.ts";
import { tinyFiles, tinyTensors } from "./tiny.cases.ts";
import type { Weights } from "./weights.ts";

const format = { bits: 4, groupSize: 64 } as const;
const original = await tinyTensors();

let root = "";
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "deltafold-convert-"));
});
afterEach(() => rm(root, { recursive: true }));

async function converted(source: Folder, options: ConvertOptions, name = "out"): Promise<Folder> {
  const path = join(root, name);
  await convertInto(source, await createOutputFolder(path), options);
  return openFolder(path);
}

const floats = memoryFolder(tinyFiles(original));

/** The tensors and config of a folder, to be compared whole. */
async function contents(folder: Folder): Promise<Record<string, unknown>> {
  const files = await openTensors(folder);
  const all: [string, unknown][] = [["config.json", JSON.parse(await folder.text("config.json"))]];
  for (const [name, { dtype, shape, bytes, read }] of files.tensors) {
    all.push([name, { dtype, shape, data: await read(0, bytes) }]);
  }
  await files.close();
  return Object.fromEntries(all);
}

async function valuesOf(weights: Weights, path: string): Promise<Float32Array> {
  const matrix = weights.matrix(path);
  if (matrix.kind === "dense") return widen(await matrix.read(0, matrix.rows), matrix.dtype);
  return dequantizeRows(await matrix.read(0, matrix.rows), matrix);
}

async function withWeights<T>(folder: Folder, use: (weights: Weights) => Promise<T>): Promise<T> {
  await using checkpoint = await openCheckpoint(folder);
  return await use(await weightsFromCheckpoint(checkpoint));
}

describe("a recipe", () => {
  it("gives modules their own widths, which load as config.json says them", async () => {
    const modules = [
      { pattern: "layers.0.*", bits: 6 },
      { pattern: "*.down_proj", bits: 3 },
      { pattern: "lm_head", bits: 8 },
      { pattern: "*.in_proj_a", bits: null },
    ] as const;
    const folder = await converted(floats, { ...format, modules });
    const { quantization } = JSON.parse(await folder.text("config.json"));
    const mlx = "language_model.model.layers";
    expect(quantization).toMatchObject({
      bits: 4,
      group_size: 64,
      mode: "affine",
      "language_model.lm_head": { group_size: 64, bits: 8 },
      [`${mlx}.0.mlp.up_proj`]: { group_size: 64, bits: 6 },
      [`${mlx}.0.mlp.down_proj`]: { group_size: 64, bits: 3 },
      [`${mlx}.1.mlp.down_proj`]: { group_size: 64, bits: 3 },
      [`${mlx}.0.linear_attn.in_proj_a`]: false,
    });
    expect(Object.keys(quantization)).not.toContain(`${mlx}.1.mlp.up_proj`);
    await withWeights(folder, async (weights) => {
      const kinds = ["embed_tokens", "lm_head", "layers.0.mlp.up_proj", "layers.1.mlp.down_proj"];
      expect(kinds.map((path) => weights.matrix(path))).toMatchObject(
        [4, 8, 6, 3].map((bits) => ({ kind: "affine", bits })),
      );
      const kept = "layers.0.linear_attn.in_proj_a";
      expect(weights.matrix(kept)).toMatchObject({ kind: "dense", dtype: "bf16" });
      const same = await withWeights(floats, (own) => valuesOf(own, kept));
      expect(await valuesOf(weights, kept)).toEqual(same);
    });
  });

  it("mixes as MLX does: the head, and v_proj and down_proj of some layers", async () => {
    const layers = 16;
    const config = { ...tinyConfig(), num_hidden_layers: layers, layer_types: null };
    const source = memoryFolder(tinyFiles(await tinyTensors(config), config));
    const folder = await converted(source, { ...format, mixedBits: 6 });
    await withWeights(folder, async (weights) => {
      const wide = Array.from({ length: layers }, (_, layer) => layer).filter((layer) => {
        const matrix = weights.matrix(`layers.${layer}.mlp.down_proj`);
        return matrix.kind === "affine" && matrix.bits === 6;
      });
      expect(wide).toEqual([0, 1, 4, 7, 10, 13, 14, 15]);
      expect(weights.matrix("layers.7.self_attn.v_proj")).toMatchObject({ bits: 6 });
      expect(weights.matrix("layers.3.self_attn.v_proj")).toMatchObject({ bits: 4 });
      expect(weights.matrix("layers.7.mlp.up_proj")).toMatchObject({ bits: 4 });
      expect(weights.matrix("lm_head")).toMatchObject({ bits: 6 });
      expect(weights.matrix("embed_tokens")).toMatchObject({ bits: 4 });
    });
  });

  it("counts a tied embedding as the head", async () => {
    const config = { ...tinyConfig(), tie_word_embeddings: true };
    const source = memoryFolder(tinyFiles(original, config));
    const folder = await converted(source, { ...format, mixedBits: 8 });
    await withWeights(folder, async (weights) => {
      expect(weights.matrix("lm_head")).toMatchObject({ kind: "affine", bits: 8 });
    });
  });

  it("is refused when it names what isn't there", async () => {
    const modules = [{ pattern: "layers.9.*", bits: 8 }] as const;
    const refused = describeConversion(floats, { ...format, modules });
    await expect(refused).rejects.toThrow(InputError);
    await expect(refused).rejects.toThrow(
      /no module is called layers\.9\.\*; .*embed_tokens or lm_head/,
    );
  });
});

describe("a quantised source", () => {
  it("is quantised anew from its values, and keeps what has the wanted format", async () => {
    const modules = [{ pattern: "lm_head", bits: 4 }] as const;
    const source = await converted(floats, { bits: 8, groupSize: 32, modules }, "8");
    const folder = await converted(source, { bits: 4, groupSize: 32 }, "4");
    await withWeights(source, (eight) =>
      withWeights(folder, async (four) => {
        const path = "layers.0.mlp.up_proj";
        const made = four.matrix(path);
        if (made.kind !== "affine") throw new Error(path);
        const expected = quantizeGroups(await valuesOf(eight, path), made);
        const rows = await made.read(0, made.rows);
        expect(rows.codes).toEqual(expected.codes);
        expect(rows.scales).toEqual(widen(bytesOf(expected.scales), "bf16"));
        expect(rows.biases).toEqual(widen(bytesOf(expected.biases), "bf16"));
      }),
    );
    const [before, after] = [await contents(source), await contents(folder)];
    for (const part of ["weight", "scales", "biases"]) {
      const name = `language_model.lm_head.${part}`;
      expect(after[name]).toEqual(before[name]);
    }
    expect(after["config.json"]).toMatchObject({ quantization: { bits: 4, group_size: 32 } });
    expect(JSON.stringify(after["config.json"])).not.toContain("lm_head");
  });

  it("keeps modules as asked, and those that groups don't divide, in their own formats", async () => {
    const source = await converted(floats, { bits: 8, groupSize: 64 }, "8");
    const modules = [{ pattern: "layers.0.mlp.down_proj", bits: null }] as const;
    const folder = await converted(source, { bits: 4, groupSize: 128, modules }, "4");
    await withWeights(folder, async (weights) => {
      for (const path of ["layers.0.mlp.down_proj", "layers.0.mlp.up_proj"]) {
        expect(weights.matrix(path)).toMatchObject({ kind: "affine", bits: 8, groupSize: 64 });
      }
      expect(weights.matrix("layers.1.mlp.down_proj")).toMatchObject({ bits: 4, groupSize: 128 });
    });
  });

  it.each(["F16", "F32"] as const)("copies scales of %s bit for bit", async (dtype) => {
    const eight = await converted(floats, { bits: 8, groupSize: 64 }, "8");
    const files = await openTensors(eight);
    const tensors: RawTensor[] = [];
    for (const { name, shape, bytes, read, dtype: own } of files.tensors.values()) {
      const data = await read(0, bytes);
      const isScale = /\.(scales|biases)$/.test(name);
      const values = widen(data, "bf16");
      const wide =
        dtype === "F32" ? bytesOf(values) : bytesOf(Uint16Array.from(values, f16FromF32));
      tensors.push({ name, shape, dtype: isScale ? dtype : own, data: isScale ? wide : data });
    }
    await files.close();
    const config = JSON.parse(await eight.text("config.json"));
    const source = memoryFolder(tinyFiles(tensors, config));
    const modules = [{ pattern: "lm_head", bits: 8 }] as const;
    const folder = await converted(source, { ...format, modules }, "4");
    const [before, after] = [await contents(source), await contents(folder)];
    const name = "language_model.lm_head.scales";
    expect(after[name]).toMatchObject({ dtype });
    expect(after[name]).toEqual(before[name]);
  });

  it("is refused when it has the wanted format throughout", async () => {
    const source = await converted(floats, format);
    await expect(describeConversion(source, format)).rejects.toThrow(
      /is 4 bits in groups of 64 already/,
    );
  });
});

describe("an fp8 source", () => {
  const quantization_config = { quant_method: "fp8", weight_block_size: [48, 40] };
  const { tensors, values } = fp8Tensors(original, [48, 40]);
  const config = { model_type: "qwen3_5", text_config: { ...tinyConfig(), quantization_config } };
  const source = memoryFolder(tinyFiles(tensors, config));

  it("loads as the product of its values and their block's scale", async () => {
    await withWeights(source, async (weights) => {
      const path = "layers.0.mlp.down_proj";
      const matrix = weights.matrix(path);
      if (matrix.kind !== "dense") throw new Error(path);
      expect(matrix).toMatchObject({ dtype: "f32", rows: 64, cols: 128 });
      const expected = values.get(`model.${path}.weight`);
      expect(await valuesOf(weights, path)).toEqual(expected);
      // Rows from within one row of blocks into the next.
      const part = widen(await matrix.read(45, 7), "f32");
      expect(part).toEqual(expected?.slice(45 * 128, 52 * 128));
      expect(weights.matrix("lm_head")).toMatchObject({ dtype: "bf16" });
    });
  });

  it("is quantised from those values, and its config says so no more", async () => {
    const folder = await converted(source, format);
    const wide = original.map((tensor) => {
      const own = values.get(tensor.name);
      return own === undefined ? tensor : { ...tensor, dtype: "F32", data: bytesOf(own) };
    });
    const expected = await converted(memoryFolder(tinyFiles(wide, config)), format, "wide");
    const [made, same] = [await contents(folder), await contents(expected)];
    expect(made).toEqual(same);
    expect(JSON.stringify(made["config.json"])).not.toContain("fp8");
  });

  const without = (name: string) => tensors.filter((tensor) => tensor.name !== name);
  const scales = "model.layers.0.mlp.down_proj.weight_scale_inv";
  it.each<[string, RawTensor[], object, RegExp]>([
    ["scales are missing", without(scales), config, /has no tensor .*down_proj\.weight_scale_inv/],
    [
      "scales are of other blocks",
      tensors,
      {
        ...tinyConfig(),
        quantization_config: { ...quantization_config, weight_block_size: [64, 64] },
      },
      /weight_scale_inv: shape \[.*\], expected/,
    ],
    [
      "the config is silent",
      tensors,
      tinyConfig(),
      /is fp8, but config\.json has no quant_method fp8/,
    ],
    [
      "it has scales of activations too",
      [
        ...tensors,
        {
          name: "model.layers.0.mlp.down_proj.input_scale",
          dtype: "F32",
          shape: [1],
          data: new Uint8Array(4),
        },
      ],
      config,
      /input_scale has no place/,
    ],
  ])("is refused when %s", async (_, files, own, message) => {
    const refused = withWeights(memoryFolder(tinyFiles(files, own)), async () => {});
    await expect(refused).rejects.toThrow(message);
  });

  it("is refused when a value is NaN, naming the tensor", async () => {
    const spoilt = tensors.map((tensor) =>
      tensor.dtype === "F8_E4M3" ? { ...tensor, data: tensor.data.map(() => 0x7f) } : tensor,
    );
    const refused = converted(memoryFolder(tinyFiles(spoilt, config)), format);
    await expect(refused).rejects.toThrow(/rows 0 .* infinity or NaN/);
  });
});

describe("describeConversion", () => {
  it("says what would be written, which is what is written", async () => {
    const options = {
      bits: 4,
      groupSize: 128,
      shardBytes: 20_000,
      modules: [{ pattern: "layers.1.mlp.down_proj", bits: 8 }],
    } as const;
    const summary = await describeConversion(floats, options);
    const output = await createOutputFolder(join(root, "out"));
    expect(await convertInto(floats, output, options)).toEqual(summary);
    const folder = await openFolder(join(root, "out"));
    const files = await openTensors(folder);
    const stored = [...files.tensors.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    expect(summary.bytes).toBe(stored);
    expect(summary.shards).toBe(files.headers.length);
    await files.close();
    const kinds = Object.fromEntries(summary.kinds.map(({ kind, modules }) => [kind, modules]));
    expect(kinds).toEqual({
      floats: 14,
      "4 bits, groups of 128": 2,
      "8 bits, groups of 128": 1,
      "norms and other small tensors": 11,
    });
    expect(summary.kept).toHaveLength(14);
    expect(summary.kept[0]).toMatchObject({ cols: 64, fate: "indivisible", format: null });
  });
});

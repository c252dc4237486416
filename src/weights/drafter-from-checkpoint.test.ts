import { join } from "node:path";
import { expect, test } from "vitest";
import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { readConfig } from "../checkpoint/config.ts";
import { openDrafter } from "../checkpoint/drafter.ts";
import {
  memoryFolder,
  type RawTensor,
  tinyConfig,
  tinyDrafterConfig,
} from "../checkpoint/files.cases.ts";
import { openFolder } from "../checkpoint/source-node.ts";
import { CheckpointError } from "../errors.ts";
import type { ModelShape } from "../model/shape.ts";
import { drafterFromCheckpoint } from "./drafter-from-checkpoint.ts";
import { drafterMatrixRoles, drafterVectorRoles } from "./drafter-roles.ts";
import { bytesOf, widen } from "./floats.ts";
import { quantizeGroups } from "./quantize.cases.ts";
import { tinyDrafterTensors, tinyFiles } from "./tiny.cases.ts";

const models = join(import.meta.dirname, "../../models");
const original = await tinyDrafterTensors();
const { shape: target } = await readConfig(
  memoryFolder(new Map([["config.json", JSON.stringify(tinyConfig())]])),
);

interface Load {
  readonly tensors?: readonly RawTensor[];
  readonly config?: object;
  readonly bits?: 0 | 4 | 8;
  readonly model?: Partial<ModelShape>;
}

async function load({ tensors = original, config = tinyDrafterConfig(), bits = 0, model }: Load) {
  const checkpoint = await openDrafter(memoryFolder(tinyFiles(tensors, config)));
  return await drafterFromCheckpoint(checkpoint, { ...target, ...model }, bits);
}

const without = (name: string) => original.filter((tensor) => tensor.name !== name);
const changed = (name: string, change: Partial<RawTensor>) =>
  original.map((tensor) => (tensor.name === name ? { ...tensor, ...change } : tensor));
const stored = (name: string) => original.find((tensor) => tensor.name === name)!;

test("tensors are as stored", async () => {
  const { weights, codebooks } = await load({});
  for (const { path, rows } of drafterMatrixRoles(weights.shape)) {
    const matrix = weights.matrix(path);
    expect(matrix).toMatchObject({ kind: "dense", dtype: "bf16", rows });
    expect(await matrix.read(0, rows)).toEqual(stored(`${path}.weight`).data);
  }
  for (const { path, tensor } of drafterVectorRoles(weights.shape)) {
    expect(await weights.vector(path)).toEqual(widen(stored(tensor).data, "bf16"));
  }
  expect(codebooks).toEqual({
    rank: 32,
    predecessor: stored("candidate_selector.predecessor_codebook").data,
    successor: stored("candidate_selector.successor_codebook").data,
  });
  const bytes = original
    .filter(({ name }) => !name.endsWith("codebook"))
    .reduce((sum, { data }) => sum + data.length, 0);
  expect(weights.storedBytes).toBe(bytes);
});

test.each([4, 8] as const)("floats become %i bits as they are read", async (bits) => {
  const { weights } = await load({ bits });
  for (const { path, rows, cols } of drafterMatrixRoles(weights.shape)) {
    const matrix = weights.matrix(path);
    expect(matrix).toMatchObject({ kind: "affine", bits, groupSize: 64, rows, cols });
    const values = widen(stored(`${path}.weight`).data, "bf16");
    const part = quantizeGroups(values.slice(2 * cols, 5 * cols), { bits, groupSize: 64 });
    expect(await matrix.read(2, 3)).toEqual({
      codes: part.codes,
      scales: widen(bytesOf(part.scales), "bf16"),
      biases: widen(bytesOf(part.biases), "bf16"),
    });
  }
  const { weights: dense } = await load({});
  expect(weights.storedBytes).toBeLessThan(dense.storedBytes);
  expect(weights.fingerprint).not.toBe(dense.fingerprint);
});

test("a matrix whose columns a group does not divide stays, and its floats must be finite", async () => {
  const config = { ...tinyDrafterConfig(), intermediate_size: 96 };
  const { weights } = await load({ tensors: await tinyDrafterTensors(config), config, bits: 4 });
  expect(weights.matrix("layers.0.mlp.down_proj")).toMatchObject({ kind: "dense", cols: 96 });
  expect(weights.matrix("layers.0.mlp.up_proj")).toMatchObject({ kind: "affine" });
  const data = stored("fc.weight").data.map(() => 0xff);
  const broken = await load({ tensors: changed("fc.weight", { data }), bits: 4 });
  await expect(broken.weights.matrix("fc").read(1, 2)).rejects.toThrow(
    /tensor fc\.weight: rows 1 to 2 hold an infinity or NaN/,
  );
});

test("other floats of a codebook are rounded to bf16, and its name may end in weight", async () => {
  const name = "candidate_selector.successor_codebook";
  const rest = without(name);
  const wide = widen(stored(name).data, "bf16").map((value) => value * (1 + 2 ** -10));
  const f32 = { ...stored(name), name: `${name}.weight`, dtype: "F32", data: bytesOf(wide) };
  const { codebooks } = await load({ tensors: [...rest, f32] });
  expect(codebooks?.successor).toEqual(stored(name).data);
});

test("a DFlash drafter has no codebooks", async () => {
  const { dflash_config: _, ...fields } = tinyDrafterConfig();
  const config = {
    ...fields,
    architectures: ["DFlashDraftModel"],
    dflash_config: { mask_token_id: 3, target_layer_ids: [1], block_size: 4 },
  };
  const tensors = await tinyDrafterTensors(config);
  const { weights, codebooks } = await load({ tensors, config });
  expect(codebooks).toBeNull();
  expect(weights.shape).toMatchObject({ kind: "dflash", featureLayers: [1] });
});

test("the drafter that comes with nano is nano's, at its own bits", async () => {
  await using nano = await openCheckpoint(await openFolder(join(models, "nano")));
  await using drafter = await openDrafter(await openFolder(join(models, "nano-dflash2")));
  const { weights, codebooks } = await drafterFromCheckpoint(drafter, nano.config.shape, 8);
  expect(weights.matrix("fc")).toMatchObject({ kind: "affine", bits: 4, groupSize: 64 });
  expect(weights.shape.featureLayers).toEqual([1, 3, 6]);
  expect(codebooks?.predecessor).toHaveLength(8192 * 64 * 2);
});

const up = "layers.0.mlp.up_proj.weight";
const stray: RawTensor = {
  name: "layers.2.mlp.up_proj.weight",
  dtype: "BF16",
  shape: [1],
  data: new Uint8Array(2),
};
test.each<[RegExp, Load]>([
  [/is a DFlash2 drafter of another model: it has hidden_size 64/, { model: { hiddenSize: 128 } }],
  [/has vocab_size 96, the model's is 97/, { model: { vocabSize: 97 } }],
  [/has num_target_layers 2, the model's is 1/, { model: { layerTypes: ["full"] } }],
  [
    /has target_layer_ids up to 1, the model has 1 layers/,
    {
      model: { layerTypes: ["full"] },
      config: { ...tinyDrafterConfig(), num_target_layers: undefined },
    },
  ],
  [/has no tensor layers\.0\.mlp\.up_proj\.weight/, { tensors: without(up) }],
  [/has no tensor hidden_norm\.weight/, { tensors: without("hidden_norm.weight") }],
  [
    /has no tensor candidate_selector\.successor_codebook/,
    { tensors: without("candidate_selector.successor_codebook") },
  ],
  [
    /up_proj\.weight: shape \[64, 128\], expected \[128, 64\]/,
    { tensors: changed(up, { shape: [64, 128] }) },
  ],
  [
    /base_kernel: shape \[2, 128\], expected \[2, 2, 64\]/,
    { tensors: changed("layers.1.mlp_conv.base_kernel", { shape: [2, 128] }) },
  ],
  [
    /predecessor_codebook: shape \[32, 96\], expected \[96, 32\]/,
    { tensors: changed("candidate_selector.predecessor_codebook", { shape: [32, 96] }) },
  ],
  [/norm\.weight: dtype I16, expected BF16/, { tensors: changed("norm.weight", { dtype: "I16" }) }],
  [
    /tensor layers\.2\.mlp\.up_proj\.weight has no place in the drafter/,
    { tensors: [...original, stray] },
  ],
])("refuses: %s", async (message, change) => {
  const error = await load(change).catch((caught) => caught);
  expect(error).toBeInstanceOf(CheckpointError);
  expect(error.message).toMatch(message);
});

import { describe, expect, it } from "vitest";
import type { ModelShape } from "../model/shape.ts";
import { dequantizeRows } from "./affine.ts";
import { widen } from "./floats.ts";
import { type RandomOptions, randomWeights } from "./random.ts";
import { matrixRoles, vectorRoles } from "./roles.ts";
import type { Matrix } from "./weights.ts";

const shape: ModelShape = {
  vocabSize: 200,
  hiddenSize: 96,
  intermediateSize: 256,
  layerTypes: ["linear", "full"],
  headCount: 4,
  kvHeadCount: 2,
  headDim: 32,
  rotaryDim: 8,
  ropeTheta: 1e4,
  linearKeyHeads: 2,
  linearValueHeads: 4,
  linearKeyDim: 16,
  linearValueDim: 32,
  convTaps: 4,
  normEps: 1e-6,
  tiedHead: true,
  contextMax: 512,
};

async function values(matrix: Matrix, first: number, count: number): Promise<Float32Array> {
  if (matrix.kind === "dense") return widen(await matrix.read(first, count), matrix.dtype);
  return dequantizeRows(await matrix.read(first, count), matrix);
}

const kinds: RandomOptions["bits"][] = [2, 3, 4, 5, 6, 8, "bf16", "f32"];

describe("randomWeights", () => {
  it.each(kinds)("has sane values of every role, alike for any split of rows: %s", async (bits) => {
    const weights = randomWeights(shape, { seed: 1, bits, groupSize: 32 });
    for (const { path, rows, cols } of matrixRoles(shape)) {
      const matrix = weights.matrix(path);
      expect([matrix.rows, matrix.cols]).toEqual([rows, cols]);
      const whole = await values(matrix, 0, rows);
      const cut = Math.floor(rows / 3);
      const parts = [...(await values(matrix, 0, cut)), ...(await values(matrix, cut, rows - cut))];
      expect(Float32Array.from(parts)).toEqual(whole);
      const square = whole.reduce((sum, value) => sum + value * value, 0) / whole.length;
      expect(Math.sqrt(square * cols)).toBeGreaterThan(0.6);
      expect(Math.sqrt(square * cols)).toBeLessThan(1.6);
    }
  });

  it("has vectors in their ranges", async () => {
    const weights = randomWeights(shape, { seed: 1, bits: 4 });
    const ranges = [
      [/norm$/, 0.8, 1.2],
      [/A_log$/, Math.log(0.01), Math.log(16)],
      [/dt_bias$/, 0.75, 1.25],
      [/conv1d$/, -0.6, 0.6],
    ] as const;
    for (const role of vectorRoles(shape)) {
      const [, low, high] = ranges.find(([pattern]) => pattern.test(role.path))!;
      const vector = await weights.vector(role.path);
      expect(vector.length).toBe(role.shape.reduce((product, size) => product * size, 1));
      expect(vector.every((value) => value >= low - 1e-6 && value <= high + 1e-6)).toBe(true);
      expect(new Set(vector).size).toBeGreaterThan(1);
    }
  });

  it("differs by seed and tensor, repeats, and is bf16 where groups don't fit", async () => {
    const weights = randomWeights(shape, { seed: 1, bits: 4, groupSize: 64 });
    expect(weights.matrix("layers.0.mlp.up_proj").kind).toBe("dense");
    expect(weights.matrix("layers.0.mlp.down_proj").kind).toBe("affine");
    expect(weights.matrix("lm_head")).toBe(weights.matrix("embed_tokens"));
    const read = (seed: number, path: string) =>
      values(randomWeights(shape, { seed, bits: 4 }).matrix(path), 3, 1);
    const first = await read(1, "layers.0.mlp.up_proj");
    expect(await read(1, "layers.0.mlp.up_proj")).toEqual(first);
    expect(await read(2, "layers.0.mlp.up_proj")).not.toEqual(first);
    expect(await read(1, "layers.0.mlp.gate_proj")).not.toEqual(first);
    expect(randomWeights(shape, { seed: 2, bits: 4 }).fingerprint).not.toBe(weights.fingerprint);
    expect(() => weights.matrix("nope")).toThrow(/no matrix nope/);
  });
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { openFolder } from "../checkpoint/source-node.ts";
import { namedShape } from "../model/released-shapes.ts";
import { planConversion } from "./convert-node.ts";
import { weightsFromCheckpoint } from "./from-checkpoint.ts";
import { matrixRoles } from "./roles.ts";
import { writeSized } from "./sizes.cases.ts";

let root = "";
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "deltafold-sizes-"));
});
afterEach(() => rm(root, { recursive: true }));

/** Text parameters in millions, and GB of 4-bit codes, scales and biases (Qwen3.5 / 3.6 / 3.8 configs). */
const released = [
  ["0.8b", 751.9, 0.423],
  ["2b", 1881.3, 1.058],
  ["4b", 4204.8, 2.365],
  ["9b", 8952.7, 5.036],
  ["27b", 26893.4, 15.128],
] as const;

describe.each(released)("a checkpoint of the size %s", (size, millions, gigabytes) => {
  it("opens as the original, and 4 bits of it take what they should", async () => {
    const path = join(root, "hf");
    await writeSized(path, { size, form: "hf", sparse: true });
    await using checkpoint = await openCheckpoint(await openFolder(path));
    expect(checkpoint.layout).toBe("hf");
    expect(checkpoint.config.shape).toEqual(namedShape(size));
    const weights = await weightsFromCheckpoint(checkpoint);
    for (const { path: module, rows, cols } of matrixRoles(weights.shape)) {
      const matrix = weights.matrix(module);
      if (matrix.kind !== "dense") throw new Error(module);
      expect(await matrix.read(rows - 1, 1)).toEqual(new Uint8Array(2 * cols));
    }
    const { parameters, kinds, shards } = await planConversion(path, { bits: 4, groupSize: 64 });
    expect(parameters / 1e6).toBeCloseTo(millions, -1);
    expect((kinds[0]?.bytes ?? 0) / 1e9).toBeCloseTo(gigabytes, 2);
    expect(shards).toBe(Math.ceil(gigabytes / 5));
  });

  it("opens as mlx-lm converts it", async () => {
    const path = join(root, "mlx");
    await writeSized(path, { size, form: "mlx", sparse: true });
    await using checkpoint = await openCheckpoint(await openFolder(path));
    expect(checkpoint.layout).toBe("mlx");
    const weights = await weightsFromCheckpoint(checkpoint);
    expect(weights.shape).toEqual(namedShape(size));
    for (const { path: module } of matrixRoles(weights.shape)) {
      expect(weights.matrix(module)).toMatchObject({ kind: "affine", bits: 4, groupSize: 64 });
    }
  });
});

import { expect, test } from "vitest";
import { pageId, slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import type { ModelShape } from "../../model/shape.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import type { Backend, Snapshot } from "../backend.ts";
import { ReferenceBackend } from "../reference/reference.ts";
import { missingGpu } from "./gpu.cases.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import { WebgpuBackend } from "./webgpu.ts";

const reason = await missingGpu();

/** Heads that are no power of two, of many and of few quads; more rows looked back than a block has. */
const heads: readonly Partial<ModelShape>[] = [
  { linearKeyDim: 32, linearValueDim: 32, linearKeyHeads: 2, linearValueHeads: 6 },
  { linearKeyDim: 24, linearValueDim: 20, linearKeyHeads: 1, linearValueHeads: 1, convTaps: 2 },
  { linearKeyDim: 128, linearValueDim: 128, linearKeyHeads: 1, linearValueHeads: 2 },
  { linearKeyDim: 8, linearValueDim: 96, linearKeyHeads: 2, linearValueHeads: 4, convTaps: 11 },
];
/** On both sides of every multiple of the kernel's block of 8 rows, up to four of them. */
const rowCounts = [1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 24, 25, 33];
const before = 5;

/** After `rows` rows that follow five: the state, history and the last row's logits. */
async function feed(backend: Backend, rows: number): Promise<Snapshot> {
  const slot = slotId(0);
  const pages = [pageId(0)];
  backend.open(slot);
  for (const [start, count] of [
    [0, before],
    [before, rows],
  ] as const) {
    const ids = Array.from({ length: count }, (_, i) => ((start + i) * 53 + 11) % 300);
    const part = { ids, start, stateSlot: slot, nextSlot: slot, pages, keepLogits: true } as const;
    await backend.read(backend.prefill(planPass([{ ...part, draw: "last", candidates: 1 }])));
  }
  const snapshot = await backend.save(slot, pages, before + rows);
  backend.release(slot);
  return snapshot;
}

/** The largest difference, relative to the largest value. */
function worst(actual: Float32Array, expected: Float32Array): number {
  const peak = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const differences = expected.map((value, at) => Math.abs(value - actual[at]!));
  return differences.reduce((most, value) => Math.max(most, value), 0) / peak;
}

if (reason !== null) {
  test.skip(`webgpu GDN: ${reason}`, () => {});
} else {
  test.each(heads)("GDN equals reference at every edge: %j", { timeout: 240_000 }, async (head) => {
    const shape = tinyShape({ ...head, layerTypes: ["linear", "linear"] });
    const weights = randomWeights(shape, { seed: 5, bits: 4, groupSize: 32 });
    const sizes = { weights, slots: 1, pages: 1, rowsMax: 64, drawsMax: 1, taps: [] };
    const choice = { platform: nodeGpuPlatform, adapter: null, synthetic: false } as const;
    await using reference = await ReferenceBackend.open(sizes);
    await using backend = await WebgpuBackend.open({ ...sizes, ...choice, activations: "f32" });
    for (const rows of rowCounts) {
      const expected = await feed(reference, rows);
      const actual = await feed(backend, rows);
      expect(worst(actual.state, expected.state), `state, ${rows} rows`).toBeLessThan(1e-4);
      expect(worst(actual.history, expected.history), `history, ${rows} rows`).toBeLessThan(1e-4);
      expect(worst(actual.logits!, expected.logits!), `logits, ${rows} rows`).toBeLessThan(2e-4);
    }
  });
}

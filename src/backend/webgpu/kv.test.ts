import { expect, test } from "vitest";
import { pageId, slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import { backendCases } from "../backend.cases.ts";
import type { BackendOptions } from "../backend.ts";
import { worstDifference } from "../models.cases.ts";
import { arithmeticsHere, missingGpu, sharedGpu, tinyWeights } from "./gpu.cases.ts";
import { checkKv } from "./support.ts";
import { WebgpuBackend } from "./webgpu.ts";

const choice = { platform: sharedGpu, adapter: null, synthetic: false, taps: [] } as const;

const reason = await missingGpu();

if (reason !== null || !(await arithmeticsHere()).includes("f16")) {
  test.skip(`16-bit KV: ${reason ?? "the adapter has no f16"}`, () => {});
} else {
  const open = (options: BackendOptions) =>
    WebgpuBackend.open({ ...options, ...choice, activations: "f32", kv: "f16" });

  backendCases({
    name: "webgpu with 16-bit KV",
    open: (sizes) => open({ ...sizes, taps: [], weights: tinyWeights }),
  });

  test("16-bit KV is near the reference, and takes half the memory", async () => {
    const weights = randomWeights(tinyShape({ headDim: 64 }), { seed: 11, bits: 8, groupSize: 32 });
    expect(await worstDifference(weights, open)).toBeLessThan(0.02);
    const sizes = { weights, slots: 1, pages: 4, rowsMax: 8, drawsMax: 1, taps: [] };
    await using narrow = await open(sizes);
    await using wide = await WebgpuBackend.open({ ...sizes, ...choice });
    expect(narrow.info.memory.kvBytes * 2).toBe(wide.info.memory.kvBytes);
    expect(narrow.info.arithmetic).toContain("f16 KV");
    expect(wide.info.arithmetic).not.toContain("KV");
  });

  test("what is written into half a page leaves the rest of it", async () => {
    const sizes = { slots: 2, pages: 2, rowsMax: 80, drawsMax: 1, taps: [] };
    await using backend = await open({ ...sizes, weights: tinyWeights });
    const pages = [pageId(1), pageId(0)];
    const ids = Array.from({ length: 80 }, (_, i) => (i * 7) % 300);
    const slot = slotId(0);
    const segment = { start: 0, stateSlot: slot, nextSlot: slot, pages, candidates: 1 } as const;
    backend.open(slot);
    await backend.read(backend.prefill(planPass([{ ...segment, ids, draw: "last" }])));
    const whole = await backend.save(slot, pages, 80);
    const part = await backend.save(slot, pages, 70);
    backend.restore(slot, pages, part);
    expect((await backend.save(slot, pages, 80)).keys).toEqual(whole.keys);
    expect((await backend.save(slot, pages, 80)).values).toEqual(whole.values);
  });
}

test("a device without 16-bit floats is told apart", () => {
  const open = { features: new Set<string>(), description: "a plain GPU" };
  expect(() => checkKv("f16", open)).toThrow(/a plain GPU has no 16-bit floats. Use --kv f32/);
  expect(() => checkKv("f32", open)).not.toThrow();
});

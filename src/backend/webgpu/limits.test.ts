import { expect, test } from "vitest";
import { pageId, slotId } from "../../ids.ts";
import { type DrafterShape, tinyDrafterShape } from "../../model/drafter-shape.ts";
import { planPass } from "../../model/plan.ts";
import { namedShape, shapeNames } from "../../model/released-shapes.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import { randomDrafterWeights } from "../../weights/random-drafter.ts";
import type { Weights } from "../../weights/weights.ts";
import { buildProgram } from "./build-program.ts";
import { DeviceMemory } from "./device-memory.ts";
import { FaultyGpu, type GpuFaults } from "./faulty-gpu.cases.ts";
import { missingGpu } from "./gpu.cases.ts";
import { Pipelines } from "./pipelines.ts";
import { placeAll } from "./places.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import type { Arithmetic } from "./projection-layout.ts";
import { stubDevice } from "./stub-device.cases.ts";
import { WebgpuBackend } from "./webgpu.ts";

const reason = await missingGpu();
const arithmetics: readonly Arithmetic[] = ["f32", "f16"];

/** Every logit of 12 rows, and how many buffers the model took; null without such arithmetic. */
async function logitsOf(
  weights: Weights,
  activations: Arithmetic,
  limits: GpuFaults["limits"] = {},
): Promise<{ logits: number[]; buffers: number } | null> {
  const platform = new FaultyGpu(nodeGpuPlatform, { limits });
  const sizes = { slots: 1, pages: 1, rowsMax: 8, drawsMax: 8, taps: [], synthetic: false };
  const opening = WebgpuBackend.open({ ...sizes, weights, platform, adapter: null, activations });
  const backend = await opening.catch((error) => {
    if (/no f16 arithmetic/.test(error.message)) return null;
    throw error;
  });
  if (!backend) return null;
  await using opened = backend;
  const slot = slotId(0);
  const stay = { stateSlot: slot, nextSlot: slot, pages: [pageId(0)], draw: "all" } as const;
  opened.open(slot);
  const logits: number[] = [];
  for (const ids of [[5, 4, 3, 2, 1, 1500, 7, 8], [9, 10, 1999], [12]]) {
    const start = logits.length / weights.shape.vocabSize;
    const plan = planPass([{ ...stay, ids, start, candidates: 0 }]);
    for (const draw of (await opened.read(opened.prefill(plan))).draws) {
      if (draw instanceof Error) throw draw;
      const row = new Array<number>(weights.shape.vocabSize);
      draw.ids.forEach((id, at) => {
        row[id] = draw.logits[at]!;
      });
      logits.push(...row);
    }
  }
  return { logits, buffers: opened.liveBuffers };
}

const wide = randomWeights(tinyShape({ vocabSize: 2000 }), { seed: 5, bits: 4, groupSize: 32 });

for (const activations of arithmetics) {
  test.skipIf(reason !== null)(
    `${activations}: tensors that are split at the binding limit give the same bits`,
    async ({ skip }) => {
      const whole = await logitsOf(wide, activations);
      if (!whole) return skip();
      const limits = { maxStorageBufferBindingSize: 2 ** 16, maxBufferSize: 2 ** 16 };
      const split = (await logitsOf(wide, activations, limits))!;
      expect(split.buffers).toBeGreaterThan(whole.buffers + 3);
      expect(whole.logits).toHaveLength(12 * 2000);
      expect(split.logits).toEqual(whole.logits);
    },
  );

  test.skipIf(reason !== null)(
    `${activations}: a dispatch that is split at the limit of workgroups gives the same bits`,
    async ({ skip }) => {
      const whole = await logitsOf(wide, activations);
      if (!whole) return skip();
      const limits = { maxComputeWorkgroupsPerDimension: 64 };
      if (activations === "f16") {
        // Tiles of the 2000 logits are 128 workgroups and never split: no vocabulary comes near the limit.
        return expect(logitsOf(wide, activations, limits)).rejects.toThrow(
          /dispatch of 128 × 1 × 1/,
        );
      }
      expect((await logitsOf(wide, activations, limits))!.logits).toEqual(whole.logits);
    },
  );

  test.each(shapeNames)(
    `${activations}: no dispatch of a released shape is too large: %s`,
    async (name) => {
      const shape = namedShape(name)!;
      const drafter = tinyDrafterShape(shape, largeDrafter);
      const options = {
        drafter: { weights: randomDrafterWeights(drafter, { seed: 1, bits: 4, groupSize: 64 }) },
        weights: randomWeights(shape, { seed: 1, bits: 4, groupSize: 64 }),
        slots: 128,
        pages: 4096,
        rowsMax: 8192,
        drawsMax: 128,
        taps: [],
        synthetic: true,
        arithmetic: activations,
      };
      const open = stubDevice();
      const memory = new DeviceMemory(open);
      const places = await placeAll(memory, options);
      const { device } = open;
      const program = await buildProgram(device, memory, new Pipelines(device), options, places);
      const most = device.limits.maxComputeWorkgroupsPerDimension;
      expect(program.pass.length).toBeGreaterThan(100);
      expect(program.draft.length).toBeGreaterThan(50);
      const common = { top: 64, scans: 0, moves: true };
      for (const { size } of Object.values(program).flat()) {
        for (const counts of [
          { ...common, rows: 8192, draws: 1, segments: 1, attention: longest(8192) },
          { ...common, rows: 128, draws: 128, segments: 128, attention: longest(128) },
          {
            ...common,
            rows: 2048,
            draws: 128,
            segments: 128,
            scans: 2048,
            attention: longest(2048),
          },
          { ...common, rows: 1, draws: 1, segments: 1, top: 0, attention: longest(1) },
        ]) {
          expect(Math.max(...size(counts))).toBeLessThanOrEqual(most);
        }
      }
    },
  );
}

test("a round of a 27B with a drafter takes few dispatches", async () => {
  const shape = namedShape("27b")!;
  const format = { seed: 1, bits: 4, groupSize: 64 } as const;
  const drafter = tinyDrafterShape(shape, { ...largeDrafter, blockRows: 8 });
  const options = {
    weights: randomWeights(shape, format),
    drafter: { weights: randomDrafterWeights(drafter, format), vocabulary: 98_304 },
    slots: 4,
    pages: 1024,
    rowsMax: 256,
    drawsMax: 64,
    taps: [],
    synthetic: true,
    arithmetic: "f16",
    kv: "f16",
  } as const;
  const open = stubDevice();
  const memory = new DeviceMemory(open);
  const places = await placeAll(memory, options);
  const { device } = open;
  const program = await buildProgram(device, memory, new Pipelines(device), options, places);
  const plain = { top: 16, scans: 0, moves: false, attention: longest(8) };
  const taken = (section: keyof typeof program, counts: { rows: number; draws: number }) =>
    program[section].filter(({ size }) => !size({ ...plain, segments: 1, ...counts }).includes(0))
      .length;
  expect(taken("pass", { rows: 8, draws: 8 })).toBe(549);
  expect(taken("keep", { rows: 0, draws: 0 })).toBe(1);
  expect(taken("extend", { rows: 8, draws: 0 })).toBe(5);
  expect(taken("draft", { rows: 8, draws: 7 })).toBe(76);
});

/** As large as any drafter that was published. */
const largeDrafter: Partial<DrafterShape> = {
  intermediateSize: 17_408,
  layers: Array.from({ length: 5 }, () => ({ window: null, causal: false })),
  headCount: 32,
  kvHeadCount: 8,
  headDim: 128,
  featureLayers: [1, 5, 9, 13, 17],
  blockRows: 16,
  selector: { rank: 256 },
};

/** Attention of a context of 262,144 tokens, a workgroup for each row and tile. */
const longest = (rows: number) => ({
  blocks: Array.from({ length: rows }, (_, firstRow) => ({ firstRow, rows: 1 })),
  blockRows: 1,
  span: 1,
  units: 4096,
  partials: 4096,
});

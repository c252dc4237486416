import { expect, test } from "vitest";
import { slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import type { BackendOptions } from "../backend.ts";
import { sumOf } from "../memory-use.ts";
import { printOf, prompt, segment } from "../suite.cases.ts";
import { placeBackend, type WasmChoice } from "./fit.ts";
import { nodePlatform } from "./platform-node.ts";
import { WasmBackend } from "./wasm.ts";

const rows = [1, 2, 5, 33];

/** What passes of every width draw and leave. */
async function fed(options: BackendOptions, choice: WasmChoice) {
  await using backend = await WasmBackend.open({ ...options, ...choice, platform: nodePlatform });
  const all = [];
  for (const count of rows) {
    backend.open(slotId(0));
    const ids = prompt.slice(0, count);
    const plan = planPass([segment(0, 0, ids, { draw: "all", candidates: 0 })]);
    const { draws } = await backend.read(backend.verify(plan));
    all.push({ draws, print: await printOf(backend, 0, count) });
  }
  return all;
}

/** A head of pieces of many blocks, and one in part. */
const shape = { vocabSize: 2061, layerTypes: ["linear", "full"] } as const;

for (const activations of ["f32", "int8"] as const) {
  for (const tiedHead of [false, true]) {
    test.each([4, 8, "bf16", "f32"] as const)(
      `${activations}, %s-bit weights, ${tiedHead ? "tied" : "a head of its own"}: in several memories`,
      async (bits) => {
        const weights = randomWeights(tinyShape({ ...shape, tiedHead }), {
          seed: 9,
          bits,
          groupSize: 32,
        });
        const sizes = { slots: 1, pages: 1, rowsMax: 33, drawsMax: 33, taps: [] };
        const options = { ...sizes, weights };
        const near = await fed(options, { threads: 2, activations });
        for (const [threads, arenaBytes] of [
          [1, 2 ** 19],
          [3, 2 ** 20],
        ] as const) {
          const choice = { threads, activations, arenaBytes };
          const { arenas, memory } = placeBackend(options, choice);
          expect(arenas.length).toBeGreaterThan(1);
          const bytes = arenas.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
          expect(sumOf(memory)).toBe(bytes);
          expect(await fed(options, choice)).toEqual(near);
        }
      },
    );
  }
}

import { expect, test } from "vitest";
import { nextTask } from "../../clock.ts";
import { type PageId, pageId, slotId } from "../../ids.ts";
import { tinyDrafterShape } from "../../model/drafter-shape.ts";
import { planPass } from "../../model/plan.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { stateFingerprint } from "../../state/fingerprint.ts";
import { randomWeights } from "../../weights/random.ts";
import { randomDrafterWeights } from "../../weights/random-drafter.ts";
import type { Backend, PassResult } from "../backend.ts";
import { Arena } from "./arena.ts";
import {
  CONTROL_BASE,
  CONTROL_DONE,
  STEP_BYTES,
  STEP_CLAIMED,
  STEP_DONE,
  UNIT_BITS,
} from "./layout.ts";
import { instantiate, type ThreadSetup, type WasmPlatform } from "./platform.ts";
import { nodePlatform } from "./platform-node.ts";
import { ThreadPool } from "./pool.ts";
import { WasmBackend } from "./wasm.ts";

/**
 * Threads that come late to a pass must change nothing: passes of very different sizes, back to back, on
 * more threads than there are cores. (A thread that misses the end of a small pass and looks at the rows
 * of a large one once claimed units that were not there.)
 */
const passes = 60;
const weights = randomWeights(tinyShape(), { seed: 9, bits: 4, groupSize: 32 });
const pages: PageId[] = Array.from({ length: 16 }, (_, index) => pageId(index));

function widths(seed: number): number[] {
  let state = seed;
  return Array.from({ length: passes }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return [1, 1, 2, 30, 1, 40][state >>> 29] ?? 3;
  });
}

async function run(backend: Backend, seed: number): Promise<string> {
  let rows = 0;
  backend.open(slotId(0));
  for (const width of widths(seed)) {
    const ids = Array.from({ length: width }, (_, i) => ((rows + i) * 37 + seed) % 300);
    const plan = planPass([
      {
        ids,
        start: rows,
        stateSlot: slotId(0),
        nextSlot: slotId(0),
        pages,
        draw: width % 2 ? "last" : "none",
        candidates: 1,
        keepLogits: true,
      },
    ]);
    await backend.read(backend.prefill(plan));
    rows += width;
  }
  return stateFingerprint(await backend.save(slotId(0), pages, rows));
}

test.each([2, 4, 8])(
  "%i threads: uneven passes back to back equal one thread's",
  async (threads) => {
    const sizes = { weights, slots: 1, pages: pages.length, rowsMax: 64, drawsMax: 1, taps: [] };
    const choice = { platform: nodePlatform, activations: "f32" } as const;
    await using one = await WasmBackend.open({ ...sizes, ...choice, threads: 1 });
    await using many = await WasmBackend.open({ ...sizes, ...choice, threads });
    for (let seed = 1; seed <= 20; seed++) expect(await run(many, seed)).toBe(await run(one, seed));
  },
);

test.each([2, 4, 8])("%i threads: contexts and drafts equal one thread's", async (threads) => {
  const shape = tinyDrafterShape(weights.shape);
  const drafter = { weights: randomDrafterWeights(shape, { seed: 4, bits: 4, groupSize: 32 }) };
  const sizes = { weights, drafter, slots: 1, pages: 16, rowsMax: 64, drawsMax: 7, taps: [] };
  const draftsOf = async (count: number) => {
    const choice = { platform: nodePlatform, activations: "f32", threads: count } as const;
    await using backend = await WasmBackend.open({ ...sizes, ...choice });
    const slot = { stateSlot: slotId(0), nextSlot: slotId(0), pages, candidates: 16 };
    const results: PassResult[] = [];
    backend.open(slotId(0));
    for (let round = 0; round < 20; round++) {
      const start = 3 * round;
      const fed = { ...slot, ids: [round, 7, 2 * round], start, draw: "none" } as const;
      backend.prefill(planPass([fed]));
      backend.extend(planPass([fed]));
      const ids = [round, ...new Array<number>(shape.blockRows - 1).fill(shape.maskId)];
      const block = planPass([{ ...slot, ids, start: start + 3, draw: "block" }]);
      results.push(await backend.read(backend.draft(block)));
    }
    return results;
  };
  expect(await draftsOf(threads)).toEqual(await draftsOf(1));
});

test("the counters have moved on before a pass is written", async () => {
  const arena = new Arena(4096);
  const counters = arena.place(3 * STEP_BYTES);
  await arena.fill();
  const module = await WebAssembly.compile(await nodePlatform.kernels(false));
  const setup = { module, program: 0, instructions: 2, counters, pass: 0, wide: false };
  const pool = await ThreadPool.start(nodePlatform, arena, setup, []);
  const words = arena.i32(counters, (3 * STEP_BYTES) / 4);
  const seen: number[] = [];
  // Nobody ends this pass; only what stands when it is written counts.
  void pool.run(() => {
    for (let step = 0; step < 3; step++) {
      const at = (step * STEP_BYTES) / 4;
      seen.push(words[at + STEP_CLAIMED / 4]!, words[at + STEP_DONE / 4]!);
    }
  });
  expect(seen).toEqual(new Array(6).fill(1 << UNIT_BITS));
});

test("a thread that is a pass late claims nothing and reports no end", async () => {
  const setups: ThreadSetup[] = [];
  const platform: WasmPlatform = {
    ...nodePlatform,
    spawn(own, failed) {
      setups.push(own);
      return nodePlatform.spawn(own, failed);
    },
  };
  const sizes = { weights, slots: 1, pages: pages.length, rowsMax: 64, drawsMax: 1, taps: [] };
  await using backend = await WasmBackend.open({
    ...sizes,
    platform,
    activations: "f32",
    threads: 1,
  });
  const fingerprint = await run(backend, 1);
  const { module, memory, program, instructions, counters, pass, scratch } = setups[0]!;
  const late = await instantiate(module, memory);
  // The last pass and the one before it are over; so is every older one.
  for (const generation of [passes, passes - 1, 1]) {
    const ended = late.run(program, instructions, pass, scratch, 1, counters, generation);
    expect(ended, `pass ${generation}`).toBe(0);
  }
  const rows = widths(1).reduce((sum, width) => sum + width, 0);
  expect(stateFingerprint(await backend.save(slotId(0), pages, rows))).toBe(fingerprint);
});

test("a wake that belongs to the last pass doesn't end this one", async () => {
  const arena = new Arena(4096);
  const counters = arena.place(STEP_BYTES);
  await arena.fill();
  const module = await WebAssembly.compile(await nodePlatform.kernels(false));
  const setup = { module, program: 0, instructions: 0, counters, pass: 0, wide: false };
  const pool = await ThreadPool.start(nodePlatform, arena, setup, []);
  const control = arena.i32(CONTROL_BASE, 1024);
  let ended = false;
  const pass = pool
    .run(() => {})
    .then(() => {
      ended = true;
    });
  // A thread that ended an earlier pass gets round to saying so.
  Atomics.notify(control, CONTROL_DONE / 4);
  for (let turn = 0; turn < 5; turn++) await nextTask();
  expect(ended).toBe(false);
  Atomics.add(control, CONTROL_DONE / 4, 1);
  Atomics.notify(control, CONTROL_DONE / 4);
  await pass;
});

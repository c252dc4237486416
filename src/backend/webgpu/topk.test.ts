import { afterAll, describe, expect, test } from "vitest";
import { slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { rotationOf } from "../../model/rope.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { orderedOrNot } from "../draw-candidates.ts";
import { KernelHarness, noAttention, TestRandom } from "./kernel-harness.cases.ts";
import { encodePass } from "./pass.ts";
import { shapeDefines } from "./program.ts";
import { selectedOf, topkSlices, topkWords, topOf, topOfPlan } from "./topk.ts";

const harness = await KernelHarness.open();
const seed = Date.now() % 1_000_000;

/** What the kernels select of each row, for as many candidates. */
async function select(gpu: KernelHarness, rows: Float32Array[], candidates: readonly number[]) {
  const vocabSize = rows[0]!.length;
  const shape = tinyShape({ vocabSize });
  const all = planPass(
    rows.map((_, slot) => ({
      ids: [0],
      start: 0,
      stateSlot: slotId(slot),
      nextSlot: slotId(slot),
      pages: [],
      draw: "last" as const,
      candidates: 0,
    })),
  );
  const draws = all.draws.map((draw, at) => ({ ...draw, candidates: candidates[at]! }));
  const plan = { ...all, draws };
  const stride = Math.ceil(vocabSize / 4) * 4;
  const logits = new Float32Array(rows.length * stride).fill(Number.NaN);
  for (const [at, row] of rows.entries()) logits.set(row, at * stride);
  const { items, slices } = topkSlices(vocabSize);
  const words = topkWords(vocabSize, rows.length);
  const pass = gpu.upload(
    encodePass(plan, rotationOf(shape), new Uint8Array(rows.length), noAttention),
  );
  const poison = (count: number) => gpu.upload(new Uint32Array(count).fill(0xffffffff));
  const input = gpu.upload(logits);
  const pairs = poison(words.pairs);
  const results = poison(words.results);
  const common = { pass, parameters: [vocabSize, stride, slices] };
  const defines = { ...shapeDefines(shape), INPUT_F16: 0 };
  await gpu.run({
    ...common,
    kernel: "topk_slice",
    defines: { ...defines, ITEMS: items },
    buffers: [input, pairs],
    size: [slices, rows.length, 1],
  });
  await gpu.run({
    ...common,
    kernel: "topk",
    defines,
    buffers: [input, pairs, results],
    size: [rows.length, 1, 1],
  });
  const read = new Float32Array(await gpu.read(results));
  gpu.free();
  const record = 2 * (topOfPlan(plan) + 1);
  return draws.map((draw, at) =>
    selectedOf(
      read.subarray(record * at, record * (at + 1)),
      Math.min(draw.candidates, vocabSize),
      1,
    ),
  );
}

const rows: Record<string, (random: TestRandom, width: number) => Float32Array> = {
  "normal logits": (random, width) => random.floats(width, 4),
  "many ties": (random, width) => Float32Array.from({ length: width }, () => random.below(5) - 2),
  "all equal": (_, width) => new Float32Array(width).fill(-1.5),
  "zeros of both signs": (random, width) =>
    Float32Array.from({ length: width }, () => random.pick([0, -0, -1])),
  "denormal numbers": (random, width) =>
    Float32Array.from({ length: width }, () => (random.below(7) - 3) * 2 ** -149),
  "the largest numbers": (random, width) =>
    Float32Array.from({ length: width }, () => random.pick([1, -1]) * 3.4028234663852886e38),
};

/** Around a slice of 4096, and a row of one. */
const widths = [1, 2, 63, 255, 256, 300, 4095, 4096, 4097, 12_289];

if (typeof harness === "string") {
  test.skip(`top-k kernels: ${harness}`, () => {});
} else {
  afterAll(async () => await harness[Symbol.asyncDispose]());

  describe(`top-k, seed ${seed}`, () => {
    for (const [name, make] of Object.entries(rows)) {
      for (const width of widths) {
        test(`${name}, ${width} of them`, async () => {
          const random = new TestRandom(seed + width);
          const candidates = [1, 2, 20, 63, 64];
          const logits = candidates.map(() => make(random, width));
          const actual = await select(harness, logits, candidates);
          for (const [at, count] of candidates.entries()) {
            expect(actual[at], `${count}`).toEqual(orderedOrNot(logits[at]!, count, 1));
          }
        });
      }
    }

    test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
      "%s anywhere fails its row alone",
      async (broken) => {
        const random = new TestRandom(seed);
        for (const at of [0, 4095, 4096, 9000]) {
          const logits = [0, 1, 2].map(() => random.floats(9001));
          logits[1]![at] = broken;
          const actual = await select(harness, logits, [1, 4, 4]);
          const expected = logits.map((row, index) => orderedOrNot(row, index === 0 ? 1 : 4, 1));
          expect(actual).toEqual(expected);
          expect(actual[1]).toBeInstanceOf(Error);
        }
      },
    );

    test("rows of more than 1,048,576 logits have longer slices", async () => {
      const random = new TestRandom(seed);
      const row = Float32Array.from({ length: 1_050_001 }, () => random.below(100_000));
      row.fill(100_000, 1_049_990);
      expect(topkSlices(row.length).items).toBeGreaterThan(16);
      expect(topkSlices(2 ** 21).slices).toBeLessThanOrEqual(256);
      expect(await select(harness, [row], [20])).toEqual([orderedOrNot(row, 20, 1)]);
    });
  });
}

test("the whole row is read for every candidate, and for more than the device selects", () => {
  expect([0, 1, 64, 65].map(topOf)).toEqual([0, 1, 64, 0]);
});

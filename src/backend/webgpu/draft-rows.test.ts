import { afterAll, describe, expect, test } from "vitest";
import { slotId } from "../../ids.ts";
import { type Plan, planPass } from "../../model/plan.ts";
import { rotationOf } from "../../model/rope.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { f16FromF32, f32FromF16 } from "../../weights/floats.ts";
import { rmsNorm } from "../reference/tensors.ts";
import { requestAdapter } from "./device.ts";
import { inputAt, KernelHarness, noAttention, TestRandom } from "./kernel-harness.cases.ts";
import { encodeKeeps, encodePass } from "./pass.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import { floatWord, shapeDefines } from "./program.ts";
import { roundUp } from "./projection-layout.ts";
import { normThreads } from "./steps-rows.ts";

const harness = await KernelHarness.open();
const seed = Date.now() % 1_000_000;
const eps = 1e-6;
const ring = 11;

interface Case {
  readonly width: number;
  readonly slices: number;
  readonly group: number;
  readonly bits: 16 | 32;
}

/** Where rows of two streams begin, and how many; the first goes over the end of its ring. */
const parts: readonly (readonly [start: number, rows: number])[] = [
  [9, 4],
  [0, 3],
];
const rows = parts.reduce((sum, [, count]) => sum + count, 0);

const plan: Plan = planPass(
  parts.map(([start, count], slot) => ({
    ids: new Array<number>(count).fill(0),
    start,
    stateSlot: slotId(slot),
    nextSlot: slotId(slot),
    pages: [],
    draw: "none",
    candidates: 0,
  })),
);
const turns = new Uint8Array(parts.length);
const passWords = encodePass(plan, rotationOf(tinyShape()), turns, noAttention);
const firsts = new Set(plan.segments.map(({ firstRow }) => firstRow));
/** By row, where its features lie. */
const places = parts.flatMap(([start, count], slot) =>
  Array.from({ length: count }, (_, row) => slot * ring + ((start + row) % ring)),
);

type Rows = readonly Float32Array<ArrayBuffer>[];

/** Rows whose slices add up to what is given here; [slice, row, width]. */
function sliced(random: TestRandom, width: number, slices: number) {
  const floats = random.floats(slices * rows * width, 0.5);
  const sums: Rows = Array.from({ length: rows }, (_, row) =>
    Float32Array.from({ length: width }, (_, i) => {
      let sum = 0;
      for (let slice = 0; slice < slices; slice++) {
        sum = Math.fround(sum + floats[(slice * rows + row) * width + i]!);
      }
      return sum;
    }),
  );
  return { floats, sums };
}

/** What the kernels' parameters name: kernels of a row from its projection, and their own. */
class Convolution {
  readonly each: Case;
  readonly base: Float32Array<ArrayBuffer>;
  readonly kernels: ReturnType<typeof sliced>;

  constructor(each: Case, random: TestRandom) {
    this.each = each;
    this.base = random.floats(4 * each.width);
    this.kernels = sliced(random, this.kernelDim, each.slices);
  }

  get kernelDim(): number {
    return (4 * this.each.width) / this.each.group;
  }

  /** The equation, in f64. */
  of(x: Rows, row: number, side: 0 | 1): Float64Array {
    const { width, group } = this.each;
    const tap = (index: number, i: number) =>
      this.base[(2 * side + index) * width + i]! +
      this.kernels.sums[row]![((2 * side + index) * width) / group + Math.floor(i / group)]!;
    return Float64Array.from({ length: width }, (_, i) => {
      const before = firsts.has(row) ? 0 : tap(1, i) * x[row - 1]![i]!;
      return tap(0, i) * x[row]![i]! + before;
    });
  }

  parameters(side: 0 | 1): number[] {
    return [side, this.kernelDim, rows * this.kernelDim, this.each.group / 4];
  }
}

const definesOf = ({ bits }: Case) => ({
  ...shapeDefines(tinyShape()),
  INPUT_F16: Number(bits === 16),
});

const inputStride = ({ width, bits }: Case, times = 1): number =>
  roundUp(times * width, bits === 16 ? 64 : 1024);

/** Rows as a projection reads them. */
function asInput(each: Case, values: Rows): Uint16Array<ArrayBuffer> | Float32Array<ArrayBuffer> {
  const stride = inputStride(each);
  const length = roundUp(rows, 8) * stride;
  const out = each.bits === 16 ? new Uint16Array(length) : new Float32Array(length);
  values.forEach((row, at) => {
    row.forEach((value, i) => {
      out[inputAt(each.bits, at, i, stride)] = each.bits === 16 ? f16FromF32(value) : value;
    });
  });
  return out;
}

/** The largest difference of what a kernel left for a projection. */
function worstOf(
  { bits }: Case,
  bytes: ArrayBuffer,
  stride: number,
  expected: readonly ArrayLike<number>[],
): number {
  const words = bits === 16 ? new Uint16Array(bytes) : new Float32Array(bytes);
  let worst = 0;
  expected.forEach((row, at) => {
    for (let i = 0; i < row.length; i++) {
      const word = words[inputAt(bits, at, i, stride)]!;
      const off = Math.abs((bits === 16 ? f32FromF16(word) : word) - row[i]!);
      worst = Math.max(worst, Number.isNaN(off) ? 1e9 : off / Math.max(1, Math.abs(row[i]!)));
    }
  });
  return worst;
}

const close = ({ bits }: Case): number => (bits === 16 ? 2e-3 : 1e-5);

/** The norm in one of its forms, over the given stream. */
async function norm(
  gpu: KernelHarness,
  each: Case,
  kernel: "norm" | "norm_feature" | "norm_conv",
  given: { hidden: Float32Array<ArrayBuffer>; updates: Float32Array<ArrayBuffer> },
  more: { buffers: readonly GPUBuffer[]; parameters: readonly number[] },
) {
  const { width, slices } = each;
  const { limits } = await requestAdapter(nodeGpuPlatform, null);
  const stream = gpu.upload(given.hidden);
  const weight = Float32Array.from({ length: width }, (_, i) => 1 + (i % 7) / 10);
  const stride = inputStride(each);
  const output = gpu.upload(new Uint32Array((roundUp(rows, 8) * stride * each.bits) / 32));
  await gpu.run({
    kernel,
    defines: {
      ...definesOf(each),
      ...normThreads(width, limits),
      SLICES: slices,
      RESIDUAL: Number(kernel !== "norm"),
      FEATURE: Number(kernel === "norm_feature"),
      CONV: Number(kernel === "norm_conv"),
      KERNEL_SLICES: slices,
      KERNEL_PARAMS: 7,
    },
    parameters: [width, width, stride, floatWord(eps), 0, width, rows * width, ...more.parameters],
    pass: gpu.upload(passWords),
    buffers: [stream, gpu.upload(weight), output, gpu.upload(given.updates), ...more.buffers],
    size: [1, rows, 1],
  });
  const normed = (sums: readonly Float32Array[]) =>
    sums.map((sum) => {
      const out = new Float32Array(width);
      rmsNorm(sum, weight, eps, out);
      return out;
    });
  const hidden = new Float32Array(await gpu.read(stream));
  return { hidden, output: await gpu.read(output), stride, normed };
}

const cases: readonly Case[] = [
  { width: 5120, slices: 8, group: 16, bits: 16 },
  { width: 128, slices: 1, group: 4, bits: 32 },
  { width: 1100, slices: 3, group: 20, bits: 32 },
];

if (typeof harness === "string") {
  test.skip(`a drafter's rows: ${harness}`, () => {});
} else {
  afterAll(async () => await harness[Symbol.asyncDispose]());
  const here = cases.filter(({ bits }) => bits === 32 || harness.has("shader-f16"));

  describe(`a drafter's rows, seed ${seed}`, () => {
    test.each(here)("a norm adds what a convolution makes of its updates: %j", async (each) => {
      const random = new TestRandom(seed);
      const { width, slices } = each;
      const convolution = new Convolution(each, random);
      const hidden = random.floats(rows * width);
      const { floats: updates, sums } = sliced(random, width, slices);
      for (const side of [0, 1] as const) {
        const buffers = [convolution.kernels.floats, convolution.base].map((of) =>
          harness.upload(of),
        );
        const more = { buffers, parameters: convolution.parameters(side) };
        const result = await norm(harness, each, "norm_conv", { hidden, updates }, more);
        const expected = sums.map((_, row) =>
          Float32Array.from(
            convolution.of(sums, row, side),
            (value, i) => hidden[row * width + i]! + value,
          ),
        );
        const stream = expected.flatMap((row) => [...row]);
        const worst = result.hidden.reduce(
          (most, value, at) => Math.max(most, Math.abs(value - (stream[at] ?? 0))),
          0,
        );
        expect(worst).toBeLessThan(2e-5);
        const normed = result.normed(expected);
        expect(worstOf(each, result.output, result.stride, normed)).toBeLessThan(close(each));
      }
      harness.free();
    });

    test.each(here)("a norm keeps a feature where it belongs: %j", async (each) => {
      const random = new TestRandom(seed);
      const { width, slices } = each;
      const hidden = random.floats(rows * width);
      const { floats: updates, sums } = sliced(random, width, slices);
      const features = harness.upload(new Float32Array(2 * ring * 3 * width).fill(-5));
      // The second of three.
      const more = { buffers: [features], parameters: [ring, (3 * width) / 4, width / 4] };
      const result = await norm(harness, each, "norm_feature", { hidden, updates }, more);
      const kept = new Float32Array(await harness.read(features));
      const expected = new Float32Array(2 * ring * 3 * width).fill(-5);
      const streams = sums.map((sum, row) =>
        sum.map((value, i) => Math.fround(hidden[row * width + i]! + value)),
      );
      streams.forEach((stream, row) => {
        expected.set(stream, places[row]! * 3 * width + width);
      });
      expect(kept).toEqual(expected);
      expect(result.hidden.slice(0, rows * width)).toEqual(
        Float32Array.from(streams.flatMap((stream) => [...stream])),
      );
      harness.free();
    });

    test.each(here)("a norm of a projection alone: %j", async (each) => {
      const random = new TestRandom(seed);
      const { width, slices } = each;
      const hidden = new Float32Array(rows * width).fill(Number.NaN);
      const { floats: updates, sums } = sliced(random, width, slices);
      const none = { buffers: [], parameters: [] };
      const result = await norm(harness, each, "norm", { hidden, updates }, none);
      expect(result.hidden.every(Number.isNaN)).toBe(true);
      const off = worstOf(each, result.output, result.stride, result.normed(sums));
      expect(off).toBeLessThan(close(each));
      harness.free();
    });

    test.each(here)("a convolution of a projection's input: %j", async (each) => {
      const random = new TestRandom(seed);
      const { width, slices, bits } = each;
      const convolution = new Convolution(each, random);
      const x: Rows = Array.from({ length: rows }, () =>
        random.floats(width).map((value) => (bits === 16 ? f32FromF16(f16FromF32(value)) : value)),
      );
      const stride = inputStride(each);
      const output = harness.upload(new Uint32Array((roundUp(rows, 8) * stride * bits) / 32));
      await harness.run({
        kernel: "dynamic_conv",
        defines: { ...definesOf(each), KERNEL_SLICES: slices, KERNEL_PARAMS: 2 },
        parameters: [width, stride, ...convolution.parameters(0)],
        pass: harness.upload(passWords),
        buffers: [
          harness.upload(asInput(each, x)),
          output,
          harness.upload(convolution.kernels.floats),
          harness.upload(convolution.base),
        ],
        size: [Math.ceil(width / 256), rows, 1],
      });
      const expected = x.map((_, row) => convolution.of(x, row, 0));
      expect(worstOf(each, await harness.read(output), stride, expected)).toBeLessThan(close(each));
      harness.free();
    });

    test.each(here)("features are moved by a keep, and gathered: %j", async (each) => {
      const random = new TestRandom(seed);
      const width = 3 * each.width;
      const floats = random.floats(2 * ring * width);
      const features = harness.upload(floats);
      const defines = definesOf(each);
      // Rows 0, 2 and 3 of the window at places 9 … 12 stay.
      const window = { slot: slotId(0), segment: plan.segments[0]!, path: [0, 2, 3], draw: null };
      await harness.run({
        kernel: "feature_move",
        defines: { ...defines, INPUT_F16: 0 },
        parameters: [width / 4, ring],
        pass: harness.upload(encodeKeeps([window], turns)),
        buffers: [features],
        size: [Math.ceil(width / 256), 1, 1],
      });
      const placed = (place: number) => floats.subarray(place * width, (place + 1) * width);
      const moved = floats.slice();
      moved.set(placed(0), 10 * width);
      moved.set(placed(1), 0);
      expect(new Float32Array(await harness.read(features))).toEqual(moved);
      const stride = inputStride(each, 3);
      const output = harness.upload(new Uint32Array((roundUp(rows, 8) * stride * each.bits) / 32));
      await harness.run({
        kernel: "gather",
        defines,
        parameters: [width / 4, ring, stride],
        pass: harness.upload(passWords),
        buffers: [features, output],
        size: [Math.ceil(width / 256), rows, 1],
      });
      const expected = places.map((place) => moved.subarray(place * width, (place + 1) * width));
      expect(worstOf(each, await harness.read(output), stride, expected)).toBeLessThan(close(each));
      harness.free();
    });
  });
}

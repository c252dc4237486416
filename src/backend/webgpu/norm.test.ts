import { afterAll, describe, expect, test } from "vitest";
import { slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { rotationOf } from "../../model/rope.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { f32FromF16 } from "../../weights/floats.ts";
import { rmsNorm } from "../reference/tensors.ts";
import { requestAdapter } from "./device.ts";
import { inputAt, KernelHarness, noAttention, TestRandom } from "./kernel-harness.cases.ts";
import { encodePass } from "./pass.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import { floatWord, shapeDefines } from "./program.ts";
import { roundUp } from "./projection-layout.ts";
import { normThreads } from "./steps-rows.ts";

const harness = await KernelHarness.open();
const seed = Date.now() % 1_000_000;
const eps = 1e-6;

interface Case {
  readonly width: number;
  readonly slices: number;
  readonly bits: 16 | 32;
  readonly draws: boolean;
  /** Rows of each segment, whose last row draws. */
  readonly segments: readonly number[];
}

/** What the kernel is given. Whatever it may not read is NaN. */
interface Rows {
  readonly rows: number;
  readonly hidden: Float32Array<ArrayBuffer>;
  /** [slices, rows and one more, width and padding]. */
  readonly updates: Float32Array<ArrayBuffer>;
  readonly weight: Float32Array<ArrayBuffer>;
}

const updateStride = ({ width }: Case): number => roundUp(width, 16);
const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

function rowsOf(each: Case, random: TestRandom): Rows {
  const { width, slices, segments } = each;
  const rows = sum(segments);
  const stride = updateStride(each);
  const updates = new Float32Array(Math.max(1, slices) * (rows + 1) * stride).fill(Number.NaN);
  for (let slice = 0; slice < slices; slice++) {
    for (let row = 0; row < rows; row++) {
      updates.set(random.floats(width, 0.5), (slice * (rows + 1) + row) * stride);
    }
  }
  return { rows, hidden: random.floats(rows * width, 3), updates, weight: random.floats(width) };
}

/** The residual stream with its update, every sum rounded as the kernel's. */
function added(each: Case, { rows, hidden, updates }: Rows): Float32Array {
  const { width, slices } = each;
  const stride = updateStride(each);
  if (slices === 0) return hidden;
  return hidden.map((value, at) => {
    const first = Math.floor(at / width) * stride + (at % width);
    let update = updates[first]!;
    for (let slice = 1; slice < slices; slice++) {
      update = Math.fround(update + updates[first + slice * (rows + 1) * stride]!);
    }
    return value + update;
  });
}

const unwritten = 0x7e117e11;

interface Result {
  readonly hidden: Uint32Array;
  readonly output: Uint16Array | Uint32Array;
}

async function norm(
  gpu: KernelHarness,
  each: Case,
  { rows, hidden, updates, weight }: Rows,
  threadsMax: number,
): Promise<Result> {
  const { width, slices, bits, draws, segments } = each;
  const plan = planPass(
    segments.map((count, slot) => ({
      ids: new Array<number>(count).fill(0),
      start: 0,
      stateSlot: slotId(slot),
      nextSlot: slotId(slot),
      pages: [],
      draw: "last" as const,
      candidates: 0,
    })),
  );
  const shape = tinyShape();
  const stride = roundUp(width, bits === 16 ? 64 : 1024);
  const words = (roundUp(rows, 8) * stride * bits) / 32;
  const stream = gpu.upload(hidden);
  const output = gpu.upload(new Uint32Array(words).fill(unwritten));
  const turns = new Uint8Array(segments.length);
  const limits = {
    maxComputeInvocationsPerWorkgroup: threadsMax,
    maxComputeWorkgroupSizeX: threadsMax,
  };
  const sliceStride = (rows + 1) * updateStride(each);
  await gpu.run({
    kernel: "norm",
    defines: {
      ...shapeDefines(shape),
      ...normThreads(width, limits),
      INPUT_F16: Number(bits === 16),
      SLICES: slices,
      RESIDUAL: 1,
      FEATURE: 0,
      CONV: 0,
    },
    parameters: [
      width,
      width,
      stride,
      floatWord(eps),
      Number(draws),
      updateStride(each),
      sliceStride,
    ],
    pass: gpu.upload(encodePass(plan, rotationOf(shape), turns, noAttention)),
    buffers: [stream, gpu.upload(weight), output, gpu.upload(updates)],
    // One row more than there are, which is nobody's.
    size: [1, (draws ? segments.length : rows) + 1, 1],
  });
  const bytes = await gpu.read(output);
  return {
    hidden: new Uint32Array(await gpu.read(stream)).slice(0, rows * width),
    output: bits === 16 ? new Uint16Array(bytes) : new Uint32Array(bytes),
  };
}

const floatsOf = (words: Uint32Array): Float32Array => new Float32Array(words.slice().buffer);

function check(each: Case, given: Rows, result: Result): void {
  const { width, bits, draws, segments } = each;
  const { rows, hidden, weight } = given;
  const sums = added(each, given);
  const lasts = segments.map((_, at) => sum(segments.slice(0, at + 1)) - 1);
  const normed = draws ? lasts : Array.from({ length: rows }, (_, row) => row);
  const stream = hidden.slice();
  for (const row of normed) stream.set(sums.subarray(row * width, (row + 1) * width), row * width);
  // Only sums, so there is one right answer; rows that aren't normed stay.
  expect(floatsOf(result.hidden)).toEqual(stream);
  const stride = roundUp(width, bits === 16 ? 64 : 1024);
  const left = new Set(result.output.keys());
  const expected = new Float32Array(width);
  let worst = 0;
  for (const [place, row] of normed.entries()) {
    rmsNorm(sums.subarray(row * width, (row + 1) * width), weight, eps, expected);
    for (let column = 0; column < width; column++) {
      const at = inputAt(bits, place, column, stride);
      const word = result.output[at]!;
      const value = bits === 16 ? f32FromF16(word) : floatsOf(Uint32Array.of(word))[0]!;
      const wanted = expected[column]!;
      // Half a unit of f16 beside the error in f32.
      const rounding = bits === 16 ? Math.abs(wanted) * 2 ** -11 + 2 ** -25 : 0;
      const off = Math.abs(value - wanted) - rounding;
      worst = Math.max(worst, off / Math.max(1e-3, Math.abs(wanted)));
      left.delete(at);
    }
  }
  expect(worst).toBeLessThan(2e-6);
  const untouched = bits === 16 ? unwritten & 0xffff : unwritten;
  expect([...left].every((at) => result.output[at] === untouched)).toBe(true);
}

/** Both sides of where a thread, a lane or a workgroup takes another quad. */
const widths = [
  4, 8, 60, 64, 68, 72, 124, 128, 132, 252, 256, 260, 508, 512, 516, 768, 1020, 1024, 1028, 1280,
  1532, 2044, 2048, 2052, 2560, 3068, 4092, 4096, 4100, 5116, 5120, 5124, 6144, 8188, 8192, 12_292,
];
const sliceCounts = [0, 1, 3, 8, 16];
const segmentations = [[1], [3], [1, 1], [2, 5], [4, 1, 6]];

/** Every width twice; the rest in turn. */
const cases: readonly Case[] = [...widths, ...widths].map((width, i) => ({
  width,
  slices: sliceCounts[i % 5]!,
  bits: (i + Math.floor(i / widths.length)) % 2 === 0 ? 16 : 32,
  draws: Math.floor(i / 2) % 2 === 0,
  segments: segmentations[(i * 3 + Math.floor(i / 5)) % 5]!,
}));

/** Fewer threads than there may be, unless a software GPU would compile their many loads for long. */
const threadCounts = ({ width, slices }: Case, most: number): number[] =>
  [32, 256, 512].filter(
    (count) => count < most && Math.ceil(width / 4 / count) * (slices + 2) <= 30,
  );

const sameBits = (a: Result, b: Result): boolean =>
  Buffer.from(a.hidden.buffer).equals(Buffer.from(b.hidden.buffer)) &&
  Buffer.from(a.output.buffer).equals(Buffer.from(b.output.buffer));

/** Each row of a pass alone, without the others. */
async function checkAlone(gpu: KernelHarness, each: Case, given: Rows, all: Result): Promise<void> {
  const { width, slices, bits } = each;
  const { rows, hidden, updates, weight } = given;
  const stride = updateStride(each);
  const alone: Case = { ...each, draws: false, segments: [1] };
  for (let row = 0; row < rows; row++) {
    const own = new Float32Array(Math.max(1, slices) * 2 * stride);
    for (let slice = 0; slice < slices; slice++) {
      const at = (slice * (rows + 1) + row) * stride;
      own.set(updates.subarray(at, at + stride), slice * 2 * stride);
    }
    const stream = hidden.slice(row * width, (row + 1) * width);
    const one = await norm(gpu, alone, { rows: 1, hidden: stream, updates: own, weight }, 256);
    const lay = roundUp(width, bits === 16 ? 64 : 1024);
    for (let column = 0; column < width; column++) {
      const at = inputAt(bits, row, column, lay);
      if (one.output[inputAt(bits, 0, column, lay)] === all.output[at]) continue;
      expect.fail(`row ${row}, column ${column} differs alone`);
    }
  }
}

if (typeof harness === "string") {
  test.skip(`norm: ${harness}`, () => {});
} else {
  afterAll(async () => await harness[Symbol.asyncDispose]());
  const { limits } = await requestAdapter(nodeGpuPlatform, null);
  const threadsHere = Math.min(
    limits.maxComputeInvocationsPerWorkgroup,
    limits.maxComputeWorkgroupSizeX,
  );
  const has16 = harness.has("shader-f16");

  describe(`norm, seed ${seed}, up to ${threadsHere} threads`, () => {
    test.each(cases)(
      "$width wide, $slices slices, f$bits, draws $draws, $segments",
      async (one) => {
        const each: Case = has16 ? one : { ...one, bits: 32 };
        const given = rowsOf(each, new TestRandom(seed + cases.indexOf(one)));
        const result = await norm(harness, each, given, threadsHere);
        check(each, given, result);
        for (const threads of threadCounts(each, threadsHere)) {
          const other = await norm(harness, each, given, threads);
          expect(sameBits(other, result), `${threads} threads`).toBe(true);
        }
        harness.free();
      },
    );

    test.each(has16 ? ([16, 32] as const) : ([32] as const))(
      "a row is the same alone, and whatever its neighbours hold, f%s",
      async (bits) => {
        const each: Case = { width: 5120, slices: 3, bits, draws: false, segments: [2, 7] };
        const given = rowsOf(each, new TestRandom(seed));
        given.hidden.fill(Number.POSITIVE_INFINITY, 4 * 5120, 4 * 5120 + 1);
        given.hidden.fill(Number.NaN, 6 * 5120, 6 * 5120 + 1);
        const result = await norm(harness, each, given, threadsHere);
        await checkAlone(harness, each, given, result);
        harness.free();
      },
    );
  });
}

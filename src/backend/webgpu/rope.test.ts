import { afterAll, describe, expect, test } from "vitest";
import { pageId, slotId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import { planPass } from "../../model/plan.ts";
import { rotationOf } from "../../model/rope.ts";
import type { ModelShape } from "../../model/shape.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { f32FromF16 } from "../../weights/floats.ts";
import { KernelHarness, noAttention, TestRandom } from "./kernel-harness.cases.ts";
import { KvPages } from "./kv-pages.ts";
import { encodePass } from "./pass.ts";
import { floatWord, shapeDefines } from "./program.ts";

const harness = await KernelHarness.open();
const seed = Date.now() % 1_000_000;

/** A normed vector, its leading dims rotated by the position; every operation in f64. */
function roped(shape: ModelShape, x: Float32Array, norm: Float32Array, position: number): number[] {
  const { rotaryDim, ropeTheta, headDim, normEps } = shape;
  const squares = x.reduce((sum, value) => sum + value * value, 0);
  const scale = 1 / Math.sqrt(squares / headDim + normEps);
  const normed = Array.from(x, (value, i) => value * scale * norm[i]!);
  const half = rotaryDim / 2;
  return normed.map((value, i) => {
    if (i >= rotaryDim) return value;
    const pair = i % half;
    const angle = position * ropeTheta ** ((-2 * pair) / rotaryDim);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    if (i < half) return value * cos - normed[i + half]! * sin;
    return value * cos + normed[i - half]! * sin;
  });
}

const worstOf = (actual: ArrayLike<number>, expected: ArrayLike<number>): number =>
  Array.from(actual).reduce(
    (most, value, at) => Math.max(most, Math.abs(value - expected[at]!)),
    0,
  );

async function check(
  gpu: KernelHarness,
  shape: ModelShape,
  bits: 16 | 32,
  start: number,
  rows: number,
): Promise<void> {
  const { headCount, kvHeadCount, headDim } = shape;
  const random = new TestRandom(seed + start);
  const pageCount = Math.ceil((start + rows) / pageRows);
  // Descending, so that a page's number is not its place.
  const pages = Array.from({ length: pageCount }, (_, at) => pageId(pageCount - 1 - at));
  const slot = slotId(0);
  const segment = { start, stateSlot: slot, nextSlot: slot, pages, candidates: 0 } as const;
  const ids = new Array<number>(rows).fill(0);
  const plan = planPass([{ ...segment, ids, draw: "none" }]);
  const pass = gpu.upload(encodePass(plan, rotationOf(shape), new Uint8Array(1), noAttention));
  const width = headCount * headDim;
  const kvWidth = kvHeadCount * headDim;
  const queryGate = random.floats(rows * 2 * width);
  const key = random.floats(rows * kvWidth);
  const value = random.floats(rows * kvWidth);
  const norms = random.floats(2 * headDim);
  const kv = new KvPages(shape, bits === 16 ? "f16" : "f32");
  const unwritten = new Uint32Array((pageCount * kv.pageBytes) / 4).fill(0x7e007e00);
  const query = gpu.upload(new Float32Array(rows * width));
  const keys = gpu.upload(unwritten);
  const values = gpu.upload(unwritten);
  await gpu.run({
    kernel: "rope",
    defines: {
      ...shapeDefines(shape),
      INPUT_F16: 0,
      KV_BITS: bits,
      SLICES: 1,
      QUERY_HEADS: headCount,
      QUERY_VECTORS: 2,
    },
    parameters: [2 * width, kvWidth, kvWidth, width, floatWord(shape.normEps)],
    pass,
    buffers: [...[queryGate, key, value, norms].map((of) => gpu.upload(of)), query, keys, values],
    size: [headCount + kvHeadCount, rows, 1],
  });
  const norm = [norms.subarray(0, headDim), norms.subarray(headDim)] as const;
  const expectedQuery: number[] = [];
  const expectedKeys: number[] = [];
  for (let row = 0; row < rows; row++) {
    for (let head = 0; head < headCount; head++) {
      const at = (row * headCount + head) * 2 * headDim;
      const x = queryGate.subarray(at, at + headDim);
      expectedQuery.push(...roped(shape, x, norm[0], start + row));
    }
    for (let head = 0; head < kvHeadCount; head++) {
      const at = (row * kvHeadCount + head) * headDim;
      expectedKeys.push(...roped(shape, key.subarray(at, at + headDim), norm[1], start + row));
    }
  }
  const stored = async (kind: "keys" | "values", buffer: GPUBuffer) => {
    const bytes = await gpu.read(buffer);
    const parts = pages.map(
      (page) => new Float32Array(bytes, page * kv.pageBytes, kv.pageBytes / 4),
    );
    const out = new Float32Array((start + rows) * kvWidth);
    kv.unpack(kind, parts, start + rows, out);
    return { before: out.subarray(0, start * kvWidth), written: out.subarray(start * kvWidth) };
  };
  const close = bits === 16 ? 4e-3 : 1e-5;
  expect(worstOf(new Float32Array(await gpu.read(query)), expectedQuery)).toBeLessThan(1e-5);
  const gotKeys = await stored("keys", keys);
  expect(worstOf(gotKeys.written, expectedKeys)).toBeLessThan(close);
  const gotValues = await stored("values", values);
  expect(worstOf(gotValues.written, value)).toBeLessThan(bits === 16 ? 4e-3 : 1e-30);
  // Rows before the pass are as they were.
  const old = bits === 16 ? f32FromF16(0x7e00) : new Float32Array(unwritten.buffer, 0, 1)[0]!;
  for (const { before } of [gotKeys, gotValues]) {
    expect(before.every((word) => Object.is(word, old))).toBe(true);
  }
  gpu.free();
}

if (typeof harness === "string") {
  test.skip(`rope: ${harness}`, () => {});
} else {
  afterAll(async () => await harness[Symbol.asyncDispose]());

  const shapes: readonly Partial<ModelShape>[] = [
    {},
    { headCount: 6, kvHeadCount: 1, headDim: 64, rotaryDim: 64 },
    { headDim: 256, rotaryDim: 64 },
    { headCount: 3, kvHeadCount: 3, headDim: 36, rotaryDim: 2 },
    { headDim: 100, rotaryDim: 50 },
  ];
  const spans = [
    [0, 1],
    [0, 64],
    [0, 65],
    [63, 1],
    [63, 2],
    [64, 1],
    [510, 5],
  ] as const;

  describe(`rope, seed ${seed}`, () => {
    for (const changes of shapes) {
      for (const bits of [32, 16] as const) {
        const name = `${JSON.stringify(changes)}, f${bits} KV`;
        if (bits === 16 && !harness.has("shader-f16")) {
          test.skip(`${name}: no shader-f16`, () => {});
          continue;
        }
        for (const [start, rows] of spans) {
          test(`${name}: ${rows} rows from ${start}`, async () => {
            await check(harness, tinyShape(changes), bits, start, rows);
          });
        }
      }
    }
  });
}

import { afterAll, describe, expect, test } from "vitest";
import { type PageId, pageId, slotId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import {
  type DrafterLayer,
  type DrafterShape,
  tinyDrafterShape,
} from "../../model/drafter-shape.ts";
import { planPass, type SegmentRequest } from "../../model/plan.ts";
import { rotationOf } from "../../model/rope.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { f16FromF32, f32FromF16 } from "../../weights/floats.ts";
import {
  draftAttendDefines,
  draftPartialsMax,
  draftQueryGroups,
  draftSplits,
} from "./draft-cut.ts";
import { inputAt, KernelHarness, noAttention, TestRandom } from "./kernel-harness.cases.ts";
import { encodePass } from "./pass.ts";
import { shapeDefines } from "./program.ts";
import { roundUp } from "./projection-layout.ts";

const harness = await KernelHarness.open();
const seed = Date.now() % 1_000_000;

/** Blocks of several streams with their contexts, in pages whose unused rows are NaN. */
class Blocks {
  readonly shape: DrafterShape;
  readonly bits: 16 | 32;
  readonly segments: readonly SegmentRequest[];
  readonly rows: number;
  /** [rows, head, dim]. */
  readonly query: Float32Array<ArrayBuffer>;
  readonly keys: Float32Array<ArrayBuffer>;
  readonly values: Float32Array<ArrayBuffer>;

  constructor(shape: DrafterShape, bits: 16 | 32, spans: Spans, random: TestRandom) {
    this.shape = shape;
    this.bits = bits;
    const counts = spans.map(([start, rows]) => Math.ceil((start + rows) / pageRows));
    const total = counts.reduce((sum, count) => sum + count, 0);
    // Every third page, so that neighbours' pages take turns.
    const order = Array.from({ length: total }, (_, at) => at).sort((a, b) => (a % 3) - (b % 3));
    this.segments = spans.map(([start, rows], slot) => {
      const pages = order.splice(0, counts[slot]).map(pageId);
      const ids = new Array<number>(rows).fill(0);
      const own = { start, pages, stateSlot: slotId(slot), nextSlot: slotId(slot) };
      return { ...own, ids, draw: "none", candidates: 0 };
    });
    this.rows = spans.reduce((sum, [, rows]) => sum + rows, 0);
    const { headCount, headDim, kvHeadCount } = shape;
    this.query = random.floats(this.rows * headCount * headDim, random.pick([0.3, 1, 3]));
    const floats = total * kvHeadCount * pageRows * headDim;
    this.keys = new Float32Array(floats).fill(Number.NaN);
    this.values = new Float32Array(floats).fill(Number.NaN);
    for (const { pages, start, ids } of this.segments) {
      for (let place = 0; place < start + ids.length; place++) {
        for (let head = 0; head < kvHeadCount; head++) {
          for (let i = 0; i < headDim; i++) {
            this.keys[this.keyAt(pages, place, head, i)] = this.stored(random.normal());
            this.values[this.valueAt(pages, place, head, i)] = this.stored(random.normal());
          }
        }
      }
    }
  }

  stored(value: number): number {
    return this.bits === 16 ? f32FromF16(f16FromF32(value)) : Math.fround(value);
  }

  keyAt(pages: readonly PageId[], place: number, head: number, i: number): number {
    const { kvHeadCount, headDim } = this.shape;
    const page = pages[Math.floor(place / pageRows)]! * kvHeadCount + head;
    const vector = page * (headDim / 4) + Math.floor(i / 4);
    return (vector * pageRows + (place % pageRows)) * 4 + (i % 4);
  }

  valueAt(pages: readonly PageId[], place: number, head: number, i: number): number {
    const { kvHeadCount, headDim } = this.shape;
    const page = pages[Math.floor(place / pageRows)]! * kvHeadCount + head;
    return (page * pageRows + (place % pageRows)) * headDim + i;
  }

  /** The same, where keys and values that no row sees may be anything. */
  without({ window }: DrafterLayer): Blocks {
    const { kvHeadCount, headDim } = this.shape;
    const keys = this.keys.slice();
    const values = this.values.slice();
    for (const { start, pages } of this.segments) {
      const first = window === null ? 0 : Math.min(start, Math.max(0, start - window + 1));
      for (let place = 0; place < first; place++) {
        for (let head = 0; head < kvHeadCount; head++) {
          for (let i = 0; i < headDim; i++) {
            keys[this.keyAt(pages, place, head, i)] = Number.NaN;
            values[this.valueAt(pages, place, head, i)] = Number.NaN;
          }
        }
      }
    }
    return Object.assign(Object.create(Blocks.prototype) as Blocks, this, { keys, values });
  }

  /** One of the blocks in a pass of its own. */
  alone(index: number): Blocks {
    const width = this.shape.headCount * this.shape.headDim;
    const before = this.segments.slice(0, index).reduce((sum, { ids }) => sum + ids.length, 0);
    const segment = this.segments[index]!;
    const rows = segment.ids.length;
    return Object.assign(Object.create(Blocks.prototype) as Blocks, this, {
      segments: [segment],
      rows,
      query: this.query.slice(before * width, (before + rows) * width),
    });
  }

  /** [rows, head, dim], every sum in f64. */
  expected({ window, causal }: DrafterLayer): Float64Array {
    const { headCount, headDim, kvHeadCount } = this.shape;
    const out = new Float64Array(this.rows * headCount * headDim);
    let row = 0;
    for (const { start, ids, pages } of this.segments) {
      for (let local = 0; local < ids.length; local++, row++) {
        const position = start + local;
        const sees = (place: number) =>
          place < start
            ? window === null || position - place < window
            : !causal || place <= position;
        const seen = Array.from({ length: start + ids.length }, (_, place) => place).filter(sees);
        for (let head = 0; head < headCount; head++) {
          const kvHead = Math.floor(head / (headCount / kvHeadCount));
          const at = (row * headCount + head) * headDim;
          const scores = seen.map((place) => {
            let dot = 0;
            for (let i = 0; i < headDim; i++) {
              dot += this.query[at + i]! * this.keys[this.keyAt(pages, place, kvHead, i)]!;
            }
            return dot / Math.sqrt(headDim);
          });
          const peak = Math.max(...scores);
          const weights = scores.map((score) => Math.exp(score - peak));
          const sum = weights.reduce((total, weight) => total + weight, 0);
          seen.forEach((place, key) => {
            for (let i = 0; i < headDim; i++) {
              const value = this.values[this.valueAt(pages, place, kvHead, i)]!;
              out[at + i]! += (weights[key]! / sum) * value;
            }
          });
        }
      }
    }
    return out;
  }

  /** [rows, head, dim] from the kernels; poison stands wherever nothing was written. */
  async attend(
    gpu: KernelHarness,
    { window, causal }: DrafterLayer,
    software: boolean,
  ): Promise<Float32Array> {
    const { shape, rows, bits } = this;
    const { headCount, headDim, kvHeadCount } = shape;
    const width = headCount * headDim;
    const stride = roundUp(width, 1024);
    const plan = planPass(this.segments);
    const rotation = rotationOf(tinyShape());
    const turns = new Uint8Array(plan.segments.length);
    const pass = gpu.upload(encodePass(plan, rotation, turns, noAttention));
    const stored = (values: Float32Array<ArrayBuffer>) =>
      gpu.upload(bits === 16 ? Uint16Array.from(values, f16FromF32) : values);
    const poison = (floats: number) => gpu.upload(new Float32Array(floats).fill(Number.NaN));
    const partials = draftPartialsMax(shape, rows);
    const outs = poison(partials.outs);
    const stats = poison(partials.stats);
    const attended = poison(rows * stride);
    const defines = {
      ...shapeDefines(tinyShape({ headCount, kvHeadCount, headDim })),
      ...draftAttendDefines(shape, software),
      INPUT_F16: 0,
    };
    const seen = [window ?? 0, Number(causal)];
    await gpu.run({
      kernel: "draft_attend",
      defines: { ...defines, KV_BITS: bits },
      parameters: [...seen, width / 4],
      pass,
      buffers: [gpu.upload(this.query), stored(this.keys), stored(this.values), outs, stats],
      size: [plan.segments.length, kvHeadCount * draftQueryGroups(shape), draftSplits],
    });
    await gpu.run({
      kernel: "draft_merge",
      defines,
      parameters: [...seen, stride],
      pass,
      buffers: [outs, stats, attended],
      size: [headCount, rows, 1],
    });
    const permuted = new Float32Array(await gpu.read(attended));
    gpu.free();
    return Float32Array.from(
      { length: rows * width },
      (_, at) => permuted[inputAt(32, Math.floor(at / width), at % width, stride)]!,
    );
  }
}

type Spans = readonly (readonly [start: number, rows: number])[];

/** Blocks without a context, around a page's edge, and behind more tiles than there are parts. */
const passes: readonly Spans[] = [
  [[0, 2]],
  [[1, 16]],
  [
    [63, 1],
    [60, 8],
    [64, 16],
  ],
  [
    [1300, 8],
    [0, 1],
    [500, 13],
  ],
];

const layers: readonly DrafterLayer[] = [
  { window: null, causal: false },
  { window: null, causal: true },
  // Less than a block, within it at the end; and one that ends between tiles.
  { window: 3, causal: false },
  { window: 70, causal: true },
  { window: 1100, causal: false },
];

interface Heads {
  readonly headCount: number;
  readonly kvHeadCount: number;
  readonly headDim: number;
}

/** Also: groups of 6, whose blocks take several workgroups; dims in an odd number of vectors; one head a KV head. */
const cases: readonly (readonly [Heads, 16 | 32, software: boolean])[] = [
  [{ headCount: 4, kvHeadCount: 2, headDim: 32 }, 32, true],
  [{ headCount: 12, kvHeadCount: 2, headDim: 64 }, 32, true],
  [{ headCount: 2, kvHeadCount: 2, headDim: 36 }, 32, true],
  [{ headCount: 4, kvHeadCount: 1, headDim: 128 }, 16, false],
  [{ headCount: 2, kvHeadCount: 1, headDim: 256 }, 16, true],
];

if (typeof harness === "string") {
  test.skip(`draft attention: ${harness}`, () => {});
} else {
  afterAll(async () => await harness[Symbol.asyncDispose]());

  describe(`draft_attend and draft_merge, seed ${seed}`, () => {
    for (const [heads, bits, software] of cases) {
      const name = `${Object.values(heads).join("/")}, f${bits} KV`;
      test.skipIf(bits === 16 && !harness.has("shader-f16"))(
        `blocks are near the f64 sums, and the same in company: ${name}`,
        { timeout: 300_000 },
        async () => {
          const shape = tinyDrafterShape(tinyShape(), heads);
          for (const [at, spans] of passes.entries()) {
            const blocks = new Blocks(shape, bits, spans, new TestRandom(seed + at));
            for (const layer of layers) {
              const label = `${JSON.stringify(spans)}, ${JSON.stringify(layer)}`;
              await check(harness, blocks.without(layer), layer, software, label);
            }
          }
        },
      );
    }
  });
}

async function check(
  gpu: KernelHarness,
  blocks: Blocks,
  layer: DrafterLayer,
  software: boolean,
  label: string,
): Promise<void> {
  const expected = blocks.expected(layer);
  const actual = await blocks.attend(gpu, layer, software);
  const worst = actual.reduce(
    (most, value, at) => Math.max(most, Math.abs(value - expected[at]!)),
    0,
  );
  expect(worst, label).toBeLessThan(1e-5);
  const { headCount, headDim } = blocks.shape;
  let at = 0;
  for (const [index, { ids }] of blocks.segments.entries()) {
    const end = at + ids.length * headCount * headDim;
    const alone = await blocks.alone(index).attend(gpu, layer, software);
    expect(bitsOf(alone), `block ${index} of ${label}`).toEqual(bitsOf(actual.slice(at, end)));
    at = end;
  }
}

const bitsOf = (values: Float32Array): Uint32Array => new Uint32Array(values.slice().buffer);

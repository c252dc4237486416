import { afterAll, describe, expect, test } from "vitest";
import { type PageId, pageId, slotId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import { isTree, pathOf, planPass, type SegmentRequest } from "../../model/plan.ts";
import { rotationOf } from "../../model/rope.ts";
import type { ModelShape } from "../../model/shape.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { f16FromF32, f32FromF16 } from "../../weights/floats.ts";
import {
  type AttentionCut,
  attendDefines,
  cut,
  headBlocks,
  mergeDefines,
} from "./attention-cut.ts";
import { KernelHarness, TestRandom } from "./kernel-harness.cases.ts";
import { encodePass } from "./pass.ts";
import { shapeDefines } from "./program.ts";

const harness = await KernelHarness.open();
const seed = Date.now() % 1_000_000;

/** Keys and values of every segment, in pages whose unused rows are NaN; queries of every row. */
class Problem {
  readonly shape: ModelShape;
  readonly bits: 16 | 32;
  readonly segments: readonly SegmentRequest[];
  readonly rows: number;
  readonly query: Float32Array<ArrayBuffer>;
  readonly gate: Float32Array<ArrayBuffer>;
  readonly keys: Float32Array<ArrayBuffer>;
  readonly values: Float32Array<ArrayBuffer>;
  readonly pageCount: number;

  constructor(
    shape: ModelShape,
    bits: 16 | 32,
    spans: readonly (readonly [start: number, rows: number])[],
    random: TestRandom,
  ) {
    this.shape = shape;
    this.bits = bits;
    this.pageCount = spans.reduce((sum, [start, rows]) => sum + pagesFor(start + rows), 0);
    const order = Array.from({ length: this.pageCount }, (_, index) => index);
    order.sort(() => random.below(3) - 1);
    let used = 0;
    this.segments = spans.map(([start, rows], index) => {
      const pages: PageId[] = order.slice(used, used + pagesFor(start + rows)).map(pageId);
      used += pages.length;
      const slot = slotId(index);
      const ids = new Array<number>(rows).fill(0);
      return { ids, start, stateSlot: slot, nextSlot: slot, pages, draw: "none", candidates: 0 };
    });
    this.rows = spans.reduce((sum, [, rows]) => sum + rows, 0);
    const { headCount, headDim, kvHeadCount } = shape;
    this.query = random.floats(this.rows * headCount * headDim, random.pick([0.3, 1, 3]));
    this.gate = random.floats(2 * this.rows * headCount * headDim);
    const floats = this.pageCount * kvHeadCount * pageRows * headDim;
    this.keys = new Float32Array(floats).fill(Number.NaN);
    this.values = new Float32Array(floats).fill(Number.NaN);
    for (const { pages, start, ids } of this.segments) {
      for (let position = 0; position < start + ids.length; position++) {
        for (let head = 0; head < kvHeadCount; head++) {
          for (let i = 0; i < headDim; i++) {
            this.keys[this.keyAt(pages, position, head, i)] = this.stored(random.normal());
            this.values[this.valueAt(pages, position, head, i)] = this.stored(random.normal());
          }
        }
      }
    }
  }

  stored(value: number): number {
    return this.bits === 16 ? f32FromF16(f16FromF32(value)) : Math.fround(value);
  }

  keyAt(pages: readonly PageId[], position: number, head: number, i: number): number {
    const { kvHeadCount, headDim } = this.shape;
    const page = pages[Math.floor(position / pageRows)]! * kvHeadCount + head;
    const vector = page * (headDim / 4) + Math.floor(i / 4);
    return (vector * pageRows + (position % pageRows)) * 4 + (i % 4);
  }

  valueAt(pages: readonly PageId[], position: number, head: number, i: number): number {
    const { kvHeadCount, headDim } = this.shape;
    const page = pages[Math.floor(position / pageRows)]! * kvHeadCount + head;
    return (page * pageRows + (position % pageRows)) * headDim + i;
  }

  /** The same row, which is row `local` of segment `index`, in a pass of its own. */
  alone(index: number, local: number): Problem {
    const { headCount, headDim } = this.shape;
    const width = headCount * headDim;
    const before = this.segments.slice(0, index).reduce((sum, part) => sum + part.ids.length, 0);
    const segment = this.segments[index]!;
    const start = segment.start + local;
    const pages = segment.pages.slice(0, pagesFor(start + 1));
    const row = before + local;
    return Object.assign(Object.create(Problem.prototype) as Problem, this, {
      segments: [{ ...segment, ids: [0], start, pages }],
      rows: 1,
      query: this.query.slice(row * width, (row + 1) * width),
      gate: this.gate.slice(2 * row * width, 2 * (row + 1) * width),
    });
  }

  /** A window's rows as a tree. */
  asTree(parents: readonly number[]): Problem {
    const segments = this.segments.map((segment) => ({ ...segment, window: true, parents }));
    return Object.assign(Object.create(Problem.prototype) as Problem, this, { segments });
  }

  /** A tree's row as the last of a chain of its path, alone: the path's keys at the places of a chain. */
  onPath(path: readonly number[]): Problem {
    const { pages, start } = this.segments[0]!;
    const { kvHeadCount, headDim } = this.shape;
    const keys = this.keys.slice();
    const values = this.values.slice();
    path.forEach((row, depth) => {
      for (let head = 0; head < kvHeadCount; head++) {
        for (let i = 0; i < headDim; i++) {
          const [from, to] = [start + row, start + depth];
          keys[this.keyAt(pages, to, head, i)] = this.keys[this.keyAt(pages, from, head, i)]!;
          values[this.valueAt(pages, to, head, i)] =
            this.values[this.valueAt(pages, from, head, i)]!;
        }
      }
    });
    const alone = this.alone(0, path.at(-1)!);
    const end = start + path.length;
    const segment = { ...alone.segments[0]!, start: end - 1, pages: pages.slice(0, pagesFor(end)) };
    return Object.assign(alone, { segments: [segment], keys, values });
  }

  /** [rows, head, dim], every sum in f64. */
  expected(): Float64Array {
    const { headCount, headDim, kvHeadCount } = this.shape;
    const out = new Float64Array(this.rows * headCount * headDim);
    let row = 0;
    for (const { start, ids, pages } of this.segments) {
      for (let local = 0; local < ids.length; local++, row++) {
        for (let head = 0; head < headCount; head++) {
          const kvHead = Math.floor(head / (headCount / kvHeadCount));
          const at = (row * headCount + head) * headDim;
          const scores: number[] = [];
          for (let key = 0; key <= start + local; key++) {
            let dot = 0;
            for (let i = 0; i < headDim; i++) {
              dot += this.query[at + i]! * this.keys[this.keyAt(pages, key, kvHead, i)]!;
            }
            scores.push(dot / Math.sqrt(headDim));
          }
          const peak = scores.reduce((most, score) => Math.max(most, score));
          let total = 0;
          for (const [key, score] of scores.entries()) {
            const weight = Math.exp(score - peak);
            total += weight;
            for (let i = 0; i < headDim; i++) {
              out[at + i]! += weight * this.values[this.valueAt(pages, key, kvHead, i)]!;
            }
          }
          for (let i = 0; i < headDim; i++) {
            const gate = this.gate[(row * headCount + head) * 2 * headDim + headDim + i]!;
            out[at + i] = out[at + i]! / total / (1 + Math.exp(-gate));
          }
        }
      }
    }
    return out;
  }

  /**
   * [rows, head, dim] from the kernels; poison stands wherever nothing was written.
   * @param software whether as on a software adapter, whose variants compile sooner
   * @param bits of the keys and values as they are stored, which hold what fits in `this.bits`
   */
  async attend(
    gpu: KernelHarness,
    how: AttentionCut,
    software = true,
    bits = this.bits,
  ): Promise<Float32Array> {
    const { shape, rows } = this;
    const { headCount, headDim, kvHeadCount } = shape;
    const width = headCount * headDim;
    const wide = Math.ceil(width / 1024) * 1024;
    const plan = planPass(this.segments);
    const tree = plan.segments.some(isTree);
    const pass = gpu.upload(
      encodePass(plan, rotationOf(shape), new Uint8Array(plan.segments.length), how),
    );
    const stored = (values: Float32Array<ArrayBuffer>) =>
      gpu.upload(bits === 16 ? Uint16Array.from(values, f16FromF32) : values);
    const poison = (floats: number) => gpu.upload(new Float32Array(floats).fill(Number.NaN));
    const outs = poison(rows * headCount * how.partials * headDim);
    const stats = poison(rows * headCount * how.partials * 2);
    const attended = poison(rows * wide);
    const defines = { ...shapeDefines(shape), INPUT_F16: 0, KV_BITS: bits };
    await gpu.run({
      kernel: "attend",
      defines: { ...defines, ...attendDefines(shape, how.blockRows, tree, software) },
      parameters: [width / 4],
      pass,
      buffers: [gpu.upload(this.query), stored(this.keys), stored(this.values), outs, stats],
      size: [how.blocks.length, kvHeadCount * headBlocks(shape), how.units],
    });
    const merge = mergeDefines(shape, how.span === 1);
    await gpu.run({
      kernel: "merge",
      defines: { ...defines, ...merge, SLICES: 1 },
      parameters: [width / 2, wide],
      pass,
      buffers: [outs, stats, gpu.upload(this.gate), attended],
      size: [headCount * Math.ceil(headDim / 4 / merge["COLUMNS"]!), rows, 1],
    });
    const permuted = new Float32Array(await gpu.read(attended));
    gpu.free();
    return Float32Array.from({ length: rows * width }, (_, at) => {
      const column = at % width;
      const within = column % 1024;
      const inBlock =
        (Math.floor((within % 32) / 4) * 32 + Math.floor(within / 32)) * 4 + (within % 4);
      return permuted[Math.floor(at / width) * wide + Math.floor(column / 1024) * 1024 + inBlock]!;
    });
  }
}

const pagesFor = (positions: number): number => Math.ceil(positions / pageRows);

type Spans = readonly (readonly [start: number, rows: number])[];

/** Rows and contexts around a tile, a chunk and a block of rows. */
const passes: readonly Spans[] = [
  [[0, 1]],
  [[0, 3]],
  [[0, 63]],
  [[0, 64]],
  [[0, 65]],
  [[62, 3]],
  [[63, 1]],
  [[64, 1]],
  [[510, 4]],
  [[511, 1]],
  [[512, 1]],
  [[1100, 17]],
  [
    [0, 2],
    [575, 5],
    [100, 16],
    [63, 1],
  ],
];

interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
  readonly dim: number;
  readonly bits: 16 | 32;
  /** Rows a block: every size takes software adapters long to compile. */
  readonly blocks: readonly number[];
}

/** Also: groups of 6 as the 27B has, one head a KV head, dims in one part, very many heads a KV head. */
const shapes: readonly Heads[] = [
  { heads: 4, kvHeads: 2, dim: 32, bits: 32, blocks: [1, 4, 16] },
  { heads: 4, kvHeads: 2, dim: 32, bits: 16, blocks: [4] },
  { heads: 12, kvHeads: 2, dim: 256, bits: 32, blocks: [1, 8] },
  { heads: 2, kvHeads: 2, dim: 36, bits: 32, blocks: [1, 16] },
  { heads: 50, kvHeads: 1, dim: 32, bits: 32, blocks: [1] },
];

/**
 * GPUs keep many loads in flight, the more the fewer queries there are, over f16 KV too. Heads of 256
 * compile for minutes here; those of 128 take as many loads at a time.
 */
const gpuShapes: readonly Heads[] = [
  { heads: 4, kvHeads: 2, dim: 32, bits: 16, blocks: [16] },
  { heads: 2, kvHeads: 2, dim: 128, bits: 16, blocks: [1] },
];
const gpuPasses: readonly Spans[] = [
  [[70, 5]],
  [[510, 4]],
  [
    [0, 2],
    [1100, 17],
    [63, 1],
  ],
];

/** Passes with trees have variants of their own. */
const treeShapes: readonly { readonly heads: Heads; readonly software: boolean }[] = [
  { heads: { heads: 4, kvHeads: 2, dim: 32, bits: 32, blocks: [1] }, software: true },
  { heads: { heads: 4, kvHeads: 2, dim: 32, bits: 16, blocks: [1] }, software: false },
];
/** Branches in turns, then a late one. */
const treeParents: readonly number[] = [-1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3];

const nameOf = ({ heads, kvHeads, dim, bits }: Heads): string =>
  `${heads}/${kvHeads} heads of ${dim}, f${bits} KV`;

/** Cold, a software adapter compiles for most of it. */
const timeoutMs = 300_000;

if (typeof harness === "string") {
  test.skip(`attention kernels: ${harness}`, () => {});
} else {
  afterAll(async () => await harness[Symbol.asyncDispose]());

  describe(`attend and merge, seed ${seed}`, () => {
    for (const heads of shapes) {
      const name = nameOf(heads);
      if (heads.bits === 16 && !harness.has("shader-f16")) {
        test.skip(`${name}: no shader-f16`, () => {});
        continue;
      }
      for (const spans of passes) {
        const run = async () => await checkPass(harness, heads, spans);
        test(`${name}, rows ${JSON.stringify(spans)}`, run, timeoutMs);
      }
    }

    for (const { heads, software } of treeShapes) {
      const name = `${nameOf(heads)}, ${software ? "software" : "GPU"}`;
      if (heads.bits === 16 && !harness.has("shader-f16")) {
        test.skip(`trees, ${name}: no shader-f16`, () => {});
        continue;
      }
      test.each([0, 5, 60, 505, 1100])(
        `a tree's rows after %i have the bits of a chain, ${name}`,
        async (start) => await checkTree(harness, heads, start, software),
        timeoutMs,
      );
    }

    for (const heads of gpuShapes) {
      const name = `${nameOf(heads)}, ${heads.blocks.join(" and ")} rows a block`;
      if (heads.bits === 16 && !harness.has("shader-f16")) {
        test.skip(`as on a GPU, ${name}: no shader-f16`, () => {});
        continue;
      }
      for (const spans of gpuPasses) {
        const run = async () => await checkAsOnGpu(harness, heads, spans);
        test(`as on a GPU, ${name}, rows ${JSON.stringify(spans)}`, run, timeoutMs);
      }
    }
  });
}

/** Near the f64 sums, and the same bits in every cut and for each row alone. */
async function checkPass(gpu: KernelHarness, heads: Heads, spans: Spans) {
  const { heads: headCount, kvHeads: kvHeadCount, dim: headDim, bits, blocks } = heads;
  const shape = tinyShape({ headCount, kvHeadCount, headDim });
  const random = new TestRandom(seed);
  const problem = new Problem(shape, bits, spans, random);
  const expected = problem.expected();
  const plan = planPass(problem.segments);
  let first: Float32Array | null = null;
  for (const blockRows of blocks) {
    for (const span of ["tile", "chunk", "all"] as const) {
      const actual = await problem.attend(gpu, cut(plan, blockRows, span));
      if (first) expect(bitsOf(actual), `${blockRows} rows, ${span}`).toEqual(bitsOf(first));
      first ??= actual;
    }
  }
  const worst = first!.reduce(
    (most, value, at) => Math.max(most, Math.abs(value - expected[at]!)),
    0,
  );
  expect(worst).toBeLessThan(1e-5);
  const width = shape.headCount * shape.headDim;
  let row = 0;
  for (const [index, { ids }] of problem.segments.entries()) {
    const local = random.below(ids.length);
    const alone = problem.alone(index, local);
    const actual = await alone.attend(gpu, cut(planPass(alone.segments), blocks[0]!, "tile"));
    const among = first!.slice((row + local) * width, (row + local + 1) * width);
    expect(bitsOf(actual), `row ${local} of segment ${index} alone`).toEqual(bitsOf(among));
    row += ids.length;
  }
}

/**
 * The variants of a GPU have the bits of a software adapter's, in every cut. Those read the same keys
 * and values as f32, so that no further variant is compiled.
 */
async function checkAsOnGpu(gpu: KernelHarness, heads: Heads, spans: Spans) {
  const { heads: headCount, kvHeads: kvHeadCount, dim: headDim, bits, blocks } = heads;
  const shape = tinyShape({ headCount, kvHeadCount, headDim });
  const problem = new Problem(shape, bits, spans, new TestRandom(seed));
  const plan = planPass(problem.segments);
  const right = bitsOf(await problem.attend(gpu, cut(plan, 1, "chunk"), true, 32));
  for (const blockRows of blocks) {
    for (const span of ["tile", "chunk", "all"] as const) {
      const actual = await problem.attend(gpu, cut(plan, blockRows, span), false);
      expect(bitsOf(actual), `${blockRows} rows, ${span}`).toEqual(right);
    }
  }
}

/** Every row of a tree has the bits of a chain of its path, in every cut. */
async function checkTree(gpu: KernelHarness, heads: Heads, start: number, software: boolean) {
  const { heads: headCount, kvHeads: kvHeadCount, dim: headDim, bits } = heads;
  const shape = tinyShape({ headCount, kvHeadCount, headDim });
  const random = new TestRandom(seed + start);
  const all = new Problem(shape, bits, [[start, treeParents.length]], random);
  const tree = all.asTree(treeParents);
  const width = headCount * headDim;
  const plan = planPass(tree.segments);
  const spans = ["tile", "chunk", "all"] as const;
  const [first, ...others] = await inTurn(spans, async (span) =>
    bitsOf(await tree.attend(gpu, cut(plan, 1, span), software)),
  );
  for (const other of others) expect(other).toEqual(first);
  for (const row of [0, 2, 9, 11, 12]) {
    const chain = all.onPath(pathOf({ parents: treeParents }, row));
    // As wide a KV type reads the same numbers, and its variant is compiled already.
    const right = await chain.attend(gpu, cut(planPass(chain.segments), 1, "tile"), true, 32);
    const actual = first!.slice(row * width, (row + 1) * width);
    expect(actual, `row ${row}`).toEqual(bitsOf(right));
  }
}

async function inTurn<In, Out>(all: readonly In[], work: (each: In) => Promise<Out>) {
  const results: Out[] = [];
  for (const each of all) results.push(await work(each));
  return results;
}

const bitsOf = (values: Float32Array): Uint32Array => new Uint32Array(values.slice().buffer);

import { afterAll, describe, expect, test } from "vitest";
import { slotId } from "../../ids.ts";
import { windowRowsMax } from "../../limits.ts";
import { pathOf, planPass } from "../../model/plan.ts";
import { rotationOf } from "../../model/rope.ts";
import { derivedSizes, type ModelShape } from "../../model/shape.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { f32FromF16 } from "../../weights/floats.ts";
import { transposed } from "../arrays.ts";
import { advance, convolve, type DeltaWeights, gatesOf } from "../reference/delta.ts";
import { rmsNorm, silu } from "../reference/tensors.ts";
import { firstRows } from "../windows.ts";
import { inputAt, KernelHarness, noAttention, TestRandom } from "./kernel-harness.cases.ts";
import { encodeKeeps, encodePass } from "./pass.ts";
import { floatWord, shapeDefines } from "./program.ts";
import { roundUp } from "./projection-layout.ts";
import { gdnLayout, keepLayout, logRows, workgroupBytesMax } from "./steps-gdn.ts";
import { scansOf } from "./trees.ts";

const harness = await KernelHarness.open();
const seed = Date.now() % 1_000_000;
const slots = 3;

interface Case {
  readonly head: Partial<ModelShape>;
  readonly slices: number;
  readonly bits: 16 | 32;
  /** Workgroup memory that the layout may use. */
  readonly bytes: number;
}

/** What a projection leaves: [slices, rows, width] whose slices are to be added. */
interface Projected {
  readonly width: number;
  readonly floats: Float32Array;
}

/** A layer's rows, weights and what lies before the first row. */
class Given {
  readonly shape: ModelShape;
  readonly each: Case;
  readonly rows: number;
  readonly qkv: Projected;
  readonly z: Projected;
  readonly b: Projected;
  readonly a: Projected;
  readonly weights: DeltaWeights;
  readonly norm: Float32Array;
  readonly state: Float32Array;
  readonly history: Float32Array;

  constructor(each: Case, rows: number) {
    const random = new TestRandom(seed);
    this.shape = tinyShape(each.head);
    this.each = each;
    this.rows = rows;
    const { convDim, valueDim, stateFloats } = derivedSizes(this.shape);
    const { linearValueHeads: heads, convTaps } = this.shape;
    const projected = (width: number): Projected => ({
      width,
      floats: random.floats(each.slices * rows * width),
    });
    this.qkv = projected(convDim);
    this.z = projected(valueDim);
    this.b = projected(heads);
    this.a = projected(heads);
    this.weights = {
      conv: random.floats(convDim * convTaps, 0.4),
      aLog: random.floats(heads, 0.5),
      dtBias: random.floats(heads, 0.2),
    };
    this.norm = random.floats(this.shape.linearValueDim);
    this.state = random.floats(stateFloats, 0.2);
    this.history = random.floats((convTaps - 1) * convDim);
  }

  /** A row with its slices added. */
  row({ width, floats }: Projected, row: number): Float32Array {
    const sums = new Float32Array(width);
    for (let slice = 0; slice < this.each.slices; slice++) {
      const first = (slice * this.rows + row) * width;
      for (let i = 0; i < width; i++) sums[i] = sums[i]! + floats[first + i]!;
    }
    return sums;
  }

  /** By the reference: every row's output, and the state after the last. */
  expected(): { rows: Float32Array[]; state: Float32Array } {
    const { shape, weights } = this;
    const { convDim, valueDim } = derivedSizes(shape);
    const { linearValueHeads: heads, linearValueDim: dim, normEps } = shape;
    const state = this.state.slice();
    const raw = Array.from({ length: shape.convTaps - 1 }, (_, at) =>
      this.history.subarray(at * convDim, (at + 1) * convDim),
    );
    const conv = new Float32Array(convDim);
    const gates = new Float32Array(2 * heads);
    const o = new Float32Array(valueDim);
    const rows = Array.from({ length: this.rows }, (_, row) => {
      raw.push(this.row(this.qkv, row));
      convolve(shape, weights, raw.slice(row), conv);
      gatesOf(weights, this.row(this.b, row), this.row(this.a, row), gates);
      advance(shape, conv, gates, state, o);
      const out = new Float32Array(valueDim);
      for (let at = 0; at < valueDim; at += dim) {
        rmsNorm(o.subarray(at, at + dim), this.norm, normEps, out.subarray(at, at + dim));
      }
      const z = this.row(this.z, row);
      return out.map((value, i) => value * silu(z[i]!));
    });
    return { rows, state };
  }
}

/** Rows [from, from + count) of what is given, as a segment of a pass. */
interface Part {
  readonly from: number;
  readonly count: number;
  readonly slot: number;
  readonly next?: number;
  readonly window?: boolean;
  readonly parents?: readonly number[] | null;
}

type Words = Uint16Array | Uint32Array;

/** The two kernels over given rows, from the given state in every slot. */
class Layer {
  readonly #gpu: KernelHarness;
  readonly #given: Given;
  readonly #state: GPUBuffer;
  readonly #history: GPUBuffer;
  readonly #log: GPUBuffer;
  readonly #turns = new Uint8Array(slots);

  constructor(gpu: KernelHarness, given: Given) {
    const { state, history, shape } = given;
    const unread = new Float32Array(history.length).fill(Number.NaN);
    const all = (parts: Float32Array[]) => Float32Array.from(parts.flatMap((part) => [...part]));
    this.#gpu = gpu;
    this.#given = given;
    this.#state = gpu.upload(all(new Array(slots).fill(state)));
    this.#history = gpu.upload(all(new Array(slots).fill([history, unread]).flat()));
    const { convDim, valueDim, keyDim } = derivedSizes(shape);
    const logFloats = 4 * shape.linearValueHeads + valueDim + keyDim + convDim;
    this.#log = gpu.upload(new Float32Array(slots * windowRowsMax * logFloats));
  }

  /** The words of each row's output, by part. */
  async scan(...parts: readonly Part[]): Promise<Words[][]> {
    const { shape, each, norm, weights } = this.#given;
    const { linearValueHeads: heads, convTaps, normEps } = shape;
    const { valueDim } = derivedSizes(shape);
    const stride = roundUp(valueDim, each.bits === 16 ? 64 : 1024);
    const plan = planPass(
      parts.map(({ count, slot, next = slot, window = false, parents = null }) => ({
        ids: new Array<number>(count).fill(0),
        start: 0,
        stateSlot: slotId(slot),
        nextSlot: slotId(next),
        pages: [],
        draw: "none" as const,
        candidates: 0,
        window,
        parents,
      })),
    );
    const scans = scansOf(plan).length;
    const rows = parts.flatMap(({ from, count }) =>
      Array.from({ length: count }, (_, at) => from + at),
    );
    const names = ["qkv", "z", "b", "a"] as const;
    // Whatever the kernel may not read is NaN.
    const sliceStride = roundUp(
      (rows.length + 1) * Math.max(...names.map((name) => this.#given[name].width)),
      4,
    );
    const inputs = names.map((name) => {
      const { width, floats } = this.#given[name];
      const gathered = new Float32Array(each.slices * sliceStride).fill(Number.NaN);
      for (let slice = 0; slice < each.slices; slice++) {
        rows.forEach((row, at) => {
          const first = (slice * this.#given.rows + row) * width;
          gathered.set(floats.subarray(first, first + width), slice * sliceStride + at * width);
        });
      }
      return this.#gpu.upload(gathered);
    });
    const rates = Array.from(weights.aLog, (log, head) => [
      -Math.exp(log),
      weights.dtBias[head]!,
      0,
      0,
    ]);
    const vectors = [...transposed(weights.conv, convTaps), ...norm, ...rates.flat()];
    const places = roundUp(rows.length, 8) * stride;
    const mixed = this.#gpu.upload(new Uint32Array((places * each.bits) / 32));
    await this.#gpu.run({
      kernel: "gdn",
      defines: {
        ...shapeDefines(shape),
        ...logRows,
        ...gdnLayout(shape, each.bytes),
        TREE: Number(scans > 0),
        SLICES: each.slices,
        INPUT_F16: Number(each.bits === 16),
      },
      parameters: [
        this.#given.qkv.width / 4,
        this.#given.z.width / 4,
        heads,
        heads,
        stride,
        floatWord(normEps),
        0,
        sliceStride,
      ],
      pass: this.#gpu.upload(encodePass(plan, rotationOf(shape), this.#turns, noAttention)),
      buffers: [
        ...inputs,
        this.#gpu.upload(Float32Array.from(vectors)),
        this.#history,
        this.#state,
        mixed,
        this.#log,
      ],
      size: [heads, scans > 0 ? scans : parts.length, 1],
    });
    for (const { slot, next = slot, window } of parts) {
      if (!window) this.#turns[next] = 1 - this.#turns[next]!;
    }
    const bytes = await this.#gpu.read(mixed);
    const all = each.bits === 16 ? new Uint16Array(bytes) : new Uint32Array(bytes);
    const columns = Array.from({ length: valueDim }, (_, column) => column);
    return plan.segments.map(({ firstRow, rows: count }) =>
      Array.from({ length: count }, (_, local) => {
        const places = columns.map((column) =>
          inputAt(each.bits, firstRow + local, column, stride),
        );
        const words = places.map((place) => all[place]!);
        return each.bits === 16 ? Uint16Array.from(words) : Uint32Array.from(words);
      }),
    );
  }

  /** Commits a path of a slot's window. */
  async keep(slot: number, path: readonly number[]): Promise<void> {
    const { shape } = this.#given;
    const { segments } = planPass([
      {
        ids: new Array<number>(windowRowsMax).fill(0),
        start: 0,
        stateSlot: slotId(slot),
        nextSlot: slotId(slot),
        pages: [],
        draw: "none",
        candidates: 0,
      },
    ]);
    const window = { slot: slotId(slot), segment: segments[0]!, path, draw: null };
    const pass = encodeKeeps([window], this.#turns);
    await this.#gpu.run({
      kernel: "gdn_keep",
      defines: { ...shapeDefines(shape), ...logRows, ...keepLayout(shape), INPUT_F16: 0 },
      parameters: [],
      pass: this.#gpu.upload(pass),
      buffers: [this.#log, this.#history, this.#state],
      size: [shape.linearValueHeads, 1, 1],
    });
    this.#turns[slot] = 1 - this.#turns[slot]!;
  }

  /** The words of a slot's state and history. */
  async saved(slot: number): Promise<{ state: Uint32Array; history: Uint32Array }> {
    const { state, history } = this.#given;
    const part = (bytes: ArrayBuffer, length: number, place: number) =>
      new Uint32Array(bytes.slice(4 * place * length, 4 * (place + 1) * length));
    const turn = 2 * slot + this.#turns[slot]!;
    return {
      state: part(await this.#gpu.read(this.#state), state.length, slot),
      history: part(await this.#gpu.read(this.#history), history.length, turn),
    };
  }
}

const floatsOf = (words: Words): Float32Array =>
  words instanceof Uint16Array
    ? Float32Array.from(words, f32FromF16)
    : new Float32Array(words.slice().buffer);

/** The largest difference, relative to the largest value. */
function worst(actual: Float32Array, expected: Float32Array): number {
  const peak = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return expected.reduce((most, value, at) => {
    const difference = Math.abs(value - actual[at]!) / peak;
    return Number.isNaN(difference) ? Number.POSITIVE_INFINITY : Math.max(most, difference);
  }, 0);
}

/** One chain of all rows in slots 0 and 1, cut as told; with a neighbour in slot 2. */
async function chained(gpu: KernelHarness, given: Given, cut: readonly number[], moves: boolean) {
  const layer = new Layer(gpu, given);
  const rows: Words[] = [];
  let slot = 0;
  for (const count of cut) {
    const next = moves ? 1 - slot : slot;
    const part = { from: rows.length, count, slot, next };
    const neighbour = { from: 1, count: 3, slot: 2 };
    const outputs = moves ? await layer.scan(neighbour, part) : await layer.scan(part);
    rows.push(...outputs.at(-1)!);
    slot = next;
  }
  return { rows, ...(await layer.saved(slot)) };
}

/** The same in windows, of which the first rows are kept. */
async function windowed(
  gpu: KernelHarness,
  given: Given,
  cut: readonly (readonly [rows: number, kept: number])[],
) {
  const layer = new Layer(gpu, given);
  const rows: Words[] = [];
  for (const [count, kept] of cut) {
    const [outputs] = await layer.scan({ from: rows.length, count, slot: 1, window: true });
    await layer.keep(1, firstRows(kept));
    rows.push(...outputs!.slice(0, kept));
  }
  return { rows, ...(await layer.saved(1)) };
}

/** Two branches in turns, siblings, a branch that leaves late, and one path that is deeper than a block. */
const trees: readonly (readonly number[])[] = [
  [-1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8],
  [-1, 0, 0, 0, 0],
  [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 3, 13, 9],
];

/** The rows of a path are some of those given. */
async function chainOfPath(gpu: KernelHarness, given: Given, path: readonly number[]) {
  const layer = new Layer(gpu, given);
  let last: Words | undefined;
  for (const from of path) [[last]] = (await layer.scan({ from, count: 1, slot: 0 })) as [Words[]];
  return { last, ...(await layer.saved(0)) };
}

/** The heads of every released model. */
const wide: Partial<ModelShape> = {
  linearKeyDim: 128,
  linearValueDim: 128,
  linearKeyHeads: 1,
  linearValueHeads: 3,
};
/** Heads that are no power of two, of many and of few quads; more rows looked back than a block has. */
const heads: readonly Partial<ModelShape>[] = [
  wide,
  { linearKeyDim: 32, linearValueDim: 32, linearKeyHeads: 2, linearValueHeads: 6 },
  { linearKeyDim: 24, linearValueDim: 20, linearKeyHeads: 1, linearValueHeads: 1, convTaps: 2 },
  { linearKeyDim: 8, linearValueDim: 96, linearKeyHeads: 2, linearValueHeads: 4, convTaps: 11 },
  { linearKeyDim: 64, linearValueDim: 8, linearKeyHeads: 2, linearValueHeads: 2, convTaps: 3 },
];

if (typeof harness === "string") {
  test.skip(`GDN: ${harness}`, () => {});
} else {
  afterAll(async () => await harness[Symbol.asyncDispose]());
  const bits = harness.has("shader-f16") ? 16 : 32;
  const cases: readonly Case[] = [
    { head: wide, slices: 1, bits: 32, bytes: 16_384 },
    ...heads.map((head, at) => {
      return { head, slices: 1 + ((at + 1) % 3), bits, bytes: workgroupBytesMax } as const;
    }),
  ];

  describe(`GDN, seed ${seed}`, () => {
    test.each(cases)("equals reference at every edge: %j", async (each) => {
      // On both sides of every multiple of the block of 8 rows, up to three of them.
      for (const rows of [1, 2, 7, 8, 9, 15, 16, 17, 25]) {
        const given = new Given(each, rows);
        const expected = given.expected();
        const actual = await chained(harness, given, [rows], false);
        const close = each.bits === 16 ? 1e-3 : 2e-5;
        actual.rows.forEach((words, row) => {
          const off = worst(floatsOf(words), expected.rows[row]!);
          expect(off, `row ${row} of ${rows}`).toBeLessThan(close);
        });
        const off = worst(new Float32Array(actual.state.buffer), expected.state);
        expect(off, `state, ${rows} rows`).toBeLessThan(1e-5);
        harness.free();
      }
    });

    test.each(cases)("has the same bits however rows are cut: %j", async (each) => {
      const given = new Given(each, 41);
      const all = await chained(harness, given, [41], false);
      const cuts = [new Array<number>(41).fill(1), [3, 8, 1, 16, 2, 11], [7, 9, 24, 1]];
      for (const cut of cuts) {
        for (const moves of [false, true]) {
          expect(await chained(harness, given, cut, moves), `${cut}, ${moves}`).toEqual(all);
        }
      }
      // Fewer are left at the end than the windows have.
      const windows = [
        [16, 1],
        [8, 8],
        [16, 11],
        [5, 2],
        [16, 16],
        [3, 3],
      ] as const;
      expect(await windowed(harness, given, windows)).toEqual(all);
      harness.free();
    });

    // Those that compile soonest.
    test.each(cases.slice(3, 5))("a tree's rows are those of chains: %j", async (each) => {
      const given = new Given(each, windowRowsMax);
      for (const parents of trees) {
        const part = { from: 0, count: parents.length, slot: 1, window: true, parents };
        const chain = { from: 2, count: 11, slot: 0 };
        const alone = (await new Layer(harness, given).scan(chain))[0];
        const layer = new Layer(harness, given);
        const [beside, rows] = await layer.scan(chain, part);
        expect(beside, `beside ${parents}`).toEqual(alone);
        for (const row of [0, parents.length - 2, parents.length - 1]) {
          const path = pathOf({ parents }, row);
          const { last, ...saved } = await chainOfPath(harness, given, path);
          expect(rows![row], `row ${row} of ${parents}`).toEqual(last);
          const kept = new Layer(harness, given);
          await kept.scan(part);
          await kept.keep(1, path);
          expect(await kept.saved(1), `path ${path}`).toEqual(saved);
        }
      }
      harness.free();
    });
  });
}

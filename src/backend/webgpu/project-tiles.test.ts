import { afterAll, expect, test } from "vitest";
import { f16FromF32, f32FromF16, widen } from "../../weights/floats.ts";
import { unpackCodes } from "../../weights/packing.ts";
import { randomAffine, randomDense } from "../../weights/random-matrix.ts";
import type { AffineBits, AffineGroupSize, Matrix } from "../../weights/weights.ts";
import { matrixFeature, type OpenDevice, openDevice } from "./device.ts";
import { DeviceMemory } from "./device-memory.ts";
import { missingGpu } from "./gpu.cases.ts";
import { inputAt } from "./kernel-harness.cases.ts";
import { Pipelines } from "./pipelines.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import {
  roundUp,
  slicesOf,
  type TileSetting,
  type TileVariant,
  variantFor,
  variantsFor,
} from "./projection-layout.ts";
import { type DeviceTiles, fillTiles, formDefines, placeTiles, tileRows } from "./tiles.ts";

const seed = 20_261_130;
const caseCount = 60;
/** Tests that they are dealt to: most of their time goes into compiling. */
const parts = 4;
/** Rows of the variants that ran. */
const seen = new Set<number>();

interface Case {
  readonly outputs: number;
  readonly cols: number;
  readonly rows: number;
  readonly bits: AffineBits | "bf16" | "f32";
  readonly groupSize: AffineGroupSize;
}

/** How project_few.wgsl goes about it. */
interface Ahead {
  /** Blocks that codes are loaded ahead, at most. */
  readonly ahead: number;
  /** Of 16 outputs, a workgroup. */
  readonly tiles: 1 | 2;
}

/** Sizes on both sides of every edge: rows of a tile, of a workgroup and of a variant; blocks of columns. */
function cases(): Case[] {
  const outputs = [1, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 200];
  const rows = [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129];
  const blocks = [1, 2, 3, 7, 8, 9, 16];
  const bits = [2, 3, 4, 5, 6, 8, "bf16", "f32"] as const;
  const sizes = [32, 64, 128] as const;
  return Array.from({ length: caseCount }, (_, i) => {
    const groupSize = sizes[i % 3]!;
    const kind = bits[i % bits.length]!;
    const columns = blocks[(i * 5) % blocks.length]! * groupSize;
    // A dense matrix may end anywhere.
    const cols = typeof kind === "string" ? columns + 4 * ((i % 5) - 2) : columns;
    return {
      outputs: outputs[(i * 3) % outputs.length]!,
      cols,
      rows: rows[(i * 7) % rows.length]!,
      bits: kind,
      groupSize,
    };
  });
}

function matrixOf({ outputs, cols, bits, groupSize }: Case, index: number): Matrix {
  const role = { kind: "matrix", path: `case ${index}`, rows: outputs, cols } as const;
  if (bits === "bf16" || bits === "f32") return randomDense(role, seed + index, bits);
  return randomAffine(role, seed + index, { bits, groupSize });
}

/** The weights as the kernel is to have them: [outputs, cols]. */
async function roundedWeights(matrix: Matrix): Promise<Float64Array> {
  const out = new Float64Array(matrix.rows * matrix.cols);
  if (matrix.kind === "dense") {
    const values = widen(await matrix.read(0, matrix.rows), matrix.dtype);
    return out.map((_, at) => f32FromF16(f16FromF32(values[at]!)));
  }
  const { codes, scales, biases } = await matrix.read(0, matrix.rows);
  const all = unpackCodes(codes, matrix.bits);
  const half = (value: number) => (matrix.bits <= 4 ? f32FromF16(f16FromF32(value)) : value);
  return out.map((_, at) => {
    const group = Math.floor(at / matrix.groupSize);
    // Rounded once in f16 arithmetic; in f32 arithmetic the first rounding hardly ever shows.
    return f32FromF16(f16FromF32(all[at]! * half(scales[group]!) + half(biases[group]!)));
  });
}

const reason = await missingGpu();
const open = reason === null ? await openDevice(nodeGpuPlatform, null) : null;
const able = open?.device.features.has("shader-f16") ?? false;

interface Projected {
  readonly slices: number;
  /** Of a slice. */
  readonly rows: number;
  readonly stride: number;
  readonly y: Float32Array;
}

/** Runs the variant for `rows` rows on a matrix whose outputs begin at column 0. */
async function project(
  { device, guard }: OpenDevice,
  pipelines: Pipelines,
  { blocks, form, parts }: DeviceTiles,
  variant: TileVariant,
  { outputs, cols }: Case,
  rows: number,
  halves: Uint16Array<ArrayBuffer>,
): Promise<Projected> {
  const memory = new DeviceMemory({ device, guard });
  const stride = roundUp(outputs, tileRows);
  const slices = slicesOf(stride, cols);
  const padded = roundUp(rows, tileRows);
  const y = await memory.create("y", 4 * slices * padded * stride, usages);
  const input = await memory.create("x", halves.byteLength, usages);
  device.queue.writeBuffer(input, 0, halves);
  const { pipeline, layout } = await pipelines.get(variant.kernel, {
    ...formDefines(form),
    ...variant.defines,
    MATRIX: Number(device.features.has(matrixFeature)),
    INPUT_F16: 1,
    PAGE_ROWS: 64,
    ROTARY_DIM: 8,
  });
  const words = new Uint32Array(16);
  words.set([blocks, Math.ceil(blocks / slices), stride, padded * stride, 0]);
  const parameters = await memory.create("parameters", 64, usages | GPUBufferUsage.UNIFORM);
  device.queue.writeBuffer(parameters, 0, words);
  const pass = await memory.create("pass", 64, usages);
  const [part] = parts;
  const buffers = [parameters, pass, input, part!.codes, part!.scales, y];
  const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
  const encoder = device.createCommandEncoder();
  const compute = encoder.beginComputePass();
  compute.setPipeline(pipeline);
  compute.setBindGroup(0, device.createBindGroup({ layout, entries }));
  compute.dispatchWorkgroups(stride / variant.columns, Math.ceil(rows / variant.rows), slices);
  compute.end();
  const staging = await memory.create(
    "read",
    y.size,
    (usages & GPUBufferUsage.COPY_DST) | GPUBufferUsage.MAP_READ,
  );
  encoder.copyBufferToBuffer(y, 0, staging, 0, y.size);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  const floats = new Float32Array(staging.getMappedRange().slice(0));
  memory.free();
  return { slices, rows: padded, stride, y: floats };
}

const settingOn = ({ limits }: GPUDevice): TileSetting => ({
  kind: 4,
  outputs: 128,
  blocks: 1,
  perSlice: 1,
  ahead: 1,
  workgroupBytesMax: limits.maxComputeWorkgroupStorageSize,
});

/** What none of the cases has: slices of unlike lengths, codes loaded far ahead, what is left of that. */
const sliced: readonly (Case & Ahead)[] = [
  { outputs: 100, cols: 17 * 64, rows: 9, bits: 4, groupSize: 64, ahead: 2, tiles: 1 },
  { outputs: 100, cols: 18 * 64, rows: 1, bits: 3, groupSize: 32, ahead: 2, tiles: 2 },
  { outputs: 100, cols: 33 * 64, rows: 8, bits: 8, groupSize: 64, ahead: 2, tiles: 1 },
  { outputs: 100, cols: 17 * 64 - 4, rows: 2, bits: "bf16", groupSize: 64, ahead: 1, tiles: 2 },
];

/** Compares a case with exact sums, and all variants that can make it, bit by bit. */
async function check(
  open: OpenDevice,
  pipelines: Pipelines,
  each: Case,
  index: number,
  { ahead, tiles: many }: Ahead,
): Promise<void> {
  const { device, guard } = open;
  const memory = new DeviceMemory({ device, guard });
  const matrix = matrixOf(each, index);
  const members = [{ matrix, at: 0 }];
  const tiles = await placeTiles(memory, "case", members);
  await fillTiles(device, members, tiles, null);
  const x = inputs(each, roundUp(each.rows, tileRows), tiles.blocks, index);
  const { kind } = tiles.form;
  const { blocks } = tiles;
  const perSlice = Math.ceil(blocks / slicesOf(roundUp(each.outputs, tileRows), each.cols));
  const outputs = many === 2 ? 100_000 : 128;
  const setting = { ...settingOn(device), kind, outputs, blocks, perSlice, ahead };
  const variants = variantsFor(setting);
  const variant = variantFor(variants, each.rows);
  seen.add(variant.rows);
  const run = (other: TileVariant, rows: number) =>
    project(open, pipelines, tiles, other, each, rows, x.halves);
  const all = await run(variant, each.rows);
  compare(each, all, await run(variants[0]!, 1), 1);
  // The next variant has room for these rows too, and another order of work.
  const wider = variants[variants.indexOf(variant) + 1];
  if (wider) compare(each, all, await run(wider, each.rows), each.rows);
  await checkSums(each, matrix, kind, x.values, all);
  memory.free();
}

/** The first `rows` rows are the same in both. */
function compare(each: Case, all: Projected, some: Projected, rows: number): void {
  for (let slice = 0; slice < all.slices; slice++) {
    for (let row = 0; row < rows; row++) {
      for (let n = 0; n < each.outputs; n++) {
        const a = all.y[(slice * all.rows + row) * all.stride + n]!;
        const b = some.y[(slice * some.rows + row) * some.stride + n]!;
        if (!Object.is(a, b)) {
          expect.fail(`${JSON.stringify(each)}, row ${row}, output ${n}: ${a} and ${b}`);
        }
      }
    }
  }
}

/** The first and last rows, and those around a tile's edge. */
async function checkSums(
  each: Case,
  matrix: Matrix,
  kind: number,
  x: Float64Array,
  { slices, rows, stride, y }: Projected,
): Promise<void> {
  const weights = await roundedWeights(matrix);
  const peak = weights.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  for (const row of new Set([0, 7, 8, each.rows - 1].filter((known) => known < each.rows))) {
    for (let n = 0; n < each.outputs; n++) {
      let sum = 0;
      let size = 0;
      let squares = 0;
      for (let k = 0; k < each.cols; k++) {
        const product = weights[n * each.cols + k]! * x[row * each.cols + k]!;
        sum += product;
        size += Math.abs(product);
        squares += x[row * each.cols + k]! ** 2;
      }
      let got = 0;
      for (let slice = 0; slice < slices; slice++) {
        got += y[(slice * rows + row) * stride + n]!;
      }
      // Codes of 4 bits become weights by an f16 fma, which a device may round twice.
      const twice = kind === 4 ? 4 * 2 ** -11 * peak * Math.sqrt(squares) : 0;
      const far = Math.abs(got - sum) > 1e-5 * size + twice;
      if (far) expect.fail(`${JSON.stringify(each)}, row ${row}, output ${n}: ${got}, not ${sum}`);
    }
  }
}

const title = `tiles equal exact sums in ${caseCount} shapes (seed ${seed})`;
if (open && able) {
  const pipelines = new Pipelines(open.device);
  afterAll(() => open.device.destroy());
  test.each(Array.from({ length: parts }, (_, part) => part))(`${title}, part %d`, async (part) => {
    for (const [index, each] of cases().entries()) {
      // Both numbers of tiles a workgroup; compiling them takes most of the time.
      const tiles = index % 8 === 0 ? 2 : 1;
      if (index % parts === part) await check(open, pipelines, each, index, { ahead: 1, tiles });
    }
  });
  test.each(sliced)(
    "and where $cols columns come in slices, $rows rows, $bits bits",
    async (one) => {
      await check(open, pipelines, one, 0, one);
    },
  );
  test("these shapes take every variant", () => {
    const all = variantsFor(settingOn(open.device)).map(({ rows }) => rows);
    expect([...seen].sort((a, b) => a - b)).toEqual(all);
  });
} else {
  open?.device.destroy();
  test.skip(`${title}: ${reason ?? "the adapter has no shader-f16"}`, () => {});
}

const usages = 0x80 | 0x8 | 0x4;

/** Random inputs as f16: [rows, cols] for the sums, and the kernel's layout, NaN wherever nobody may look. */
function inputs({ rows, cols }: Case, padded: number, blocks: number, index: number) {
  const values = new Float64Array(rows * cols);
  const halves = new Uint16Array(padded * blocks * 64);
  let word = seed + index;
  for (let row = 0; row < padded; row++) {
    for (let column = 0; column < blocks * 64; column++) {
      const at = inputAt(16, row, column, blocks * 64);
      word = (Math.imul(word, 1_664_525) + 1_013_904_223) >>> 0;
      const bits = f16FromF32(word / 2 ** 31 - 1);
      if (row >= rows) halves[at] = 0x7e00;
      else if (column < cols) {
        halves[at] = bits;
        values[row * cols + column] = f32FromF16(bits);
      }
    }
  }
  return { values, halves };
}

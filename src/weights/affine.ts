import { narrowToBf16 } from "./floats.ts";
import { unpackCodes } from "./packing.ts";
import { quantizeKernel } from "./quantize-kernel.gen.ts";
import type { AffineBits, AffineGroupSize, AffineRows } from "./weights.ts";

export interface AffineFormat {
  readonly bits: AffineBits;
  readonly groupSize: AffineGroupSize;
}

export const bitsAllowed: readonly AffineBits[] = [2, 3, 4, 5, 6, 8];
export const groupSizesAllowed: readonly AffineGroupSize[] = [32, 64, 128];

/** Narrows two numbers to a format that MLX defines; null when there is none. */
export function affineFormat(bits: number, groupSize: number): AffineFormat | null {
  const knownBits = bitsAllowed.find((allowed) => allowed === bits);
  const knownGroup = groupSizesAllowed.find((allowed) => allowed === groupSize);
  if (knownBits === undefined || knownGroup === undefined) return null;
  return { bits: knownBits, groupSize: knownGroup };
}

/** Whole groups as MLX stores them: packed codes, and bf16 bits of one scale and bias a group. */
export interface QuantizedGroups {
  readonly codes: Uint8Array;
  readonly scales: Uint16Array;
  readonly biases: Uint16Array;
}

/** Values that the kernel takes at once: whole groups of each size, and few enough for a core's own cache. */
const runValues = 2 ** 14;
// Where they lie in the kernel's memory of two pages: values, codes of up to 8 bits, scales, biases.
const codesAt = 4 * runValues;
const scalesAt = codesAt + runValues;
const biasesAt = scalesAt + runValues / 8;

/** As `kernels/quantize.ts` has it. */
interface QuantizeKernel {
  readonly memory: WebAssembly.Memory;
  quantize(
    values: number,
    groups: number,
    groupSize: number,
    bits: number,
    codes: number,
    scales: number,
    biases: number,
  ): void;
}

let kernel: QuantizeKernel | null = null;

/**
 * Quantises as MLX does on a CPU: all in f32 with true division, halves to even, codes chosen with
 * the f32 scale and bias, which are rounded to bf16 only then.
 *
 * Per group the edge of larger magnitude (`edge`) becomes exactly representable and zero nearly a
 * code, so a scale may be negative.
 *
 * The values are finite, of whole groups, and any number of rows. They are brought in runs, so that they never
 * leave a core's own cache.
 *
 * @param length of all values, which `groupSize` divides
 * @param fill puts the values from the `start`th on into all of `run`
 */
export function quantizeRuns(
  length: number,
  { bits, groupSize }: AffineFormat,
  fill: (run: Float32Array, start: number) => void,
): QuantizedGroups {
  kernel ??= openKernel();
  const { buffer } = kernel.memory;
  const codes = new Uint8Array((length * bits) / 8);
  const scales = new Float32Array(length / groupSize);
  const biases = new Float32Array(scales.length);
  for (let start = 0; start < length; start += runValues) {
    const run = new Float32Array(buffer, 0, Math.min(runValues, length - start));
    const groups = run.length / groupSize;
    fill(run, start);
    kernel.quantize(0, groups, groupSize, bits, codesAt, scalesAt, biasesAt);
    codes.set(new Uint8Array(buffer, codesAt, (run.length * bits) / 8), (start * bits) / 8);
    scales.set(new Float32Array(buffer, scalesAt, groups), start / groupSize);
    biases.set(new Float32Array(buffer, biasesAt, groups), start / groupSize);
  }
  return { codes, scales: narrowToBf16(scales), biases: narrowToBf16(biases) };
}

function openKernel(): QuantizeKernel {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(quantizeKernel));
  return exports as unknown as QuantizeKernel;
}

/** The values of packed rows: f32(scale · code + bias), [rowCount · cols]. */
export function dequantizeRows(rows: AffineRows, { bits, groupSize }: AffineFormat): Float32Array {
  const codes = unpackCodes(rows.codes, bits);
  const values = new Float32Array(codes.length);
  for (let group = 0; group < rows.scales.length; group++) {
    const scale = rows.scales[group]!;
    const bias = rows.biases[group]!;
    const end = (group + 1) * groupSize;
    for (let i = group * groupSize; i < end; i++) values[i] = Math.fround(scale * codes[i]!) + bias;
  }
  return values;
}

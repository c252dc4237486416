import { narrowToBf16 } from "./floats.ts";
import { packCodes, unpackCodes } from "./packing.ts";
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

const { fround } = Math;
const scaleMin = fround(1e-7);
/** Adding and taking away 1.5 · 2^52 rounds a double to an integer, halves to even. */
const roundingMagic = 1.5 * 2 ** 52;

/**
 * Quantises as MLX does on a CPU: all in f32 with true division, halves to even, codes chosen with
 * the f32 scale and bias, which are rounded to bf16 only then.
 *
 * Per group the edge of larger magnitude (`edge`) becomes exactly representable and zero nearly a
 * code, so a scale may be negative.
 *
 * @param values f32 of whole groups: any number of rows, `groupSize` dividing their length
 */
export function quantizeGroups(values: Float32Array, format: AffineFormat): QuantizedGroups {
  const { bits, groupSize } = format;
  const groups = values.length / groupSize;
  const codeMax = 2 ** bits - 1;
  const codes = new Uint8Array(values.length);
  const scales = new Float32Array(groups);
  const biases = new Float32Array(groups);
  for (let group = 0; group < groups; group++) {
    const start = group * groupSize;
    const { scale, bias } = groupScale(values, start, groupSize, codeMax);
    for (let i = start; i < start + groupSize; i++) {
      const code = roundHalfEven(fround(fround(values[i]! - bias) / scale));
      codes[i] = Math.min(Math.max(code, 0), codeMax);
    }
    scales[group] = scale;
    biases[group] = bias;
  }
  return {
    codes: packCodes(codes, bits),
    scales: narrowToBf16(scales),
    biases: narrowToBf16(biases),
  };
}

/** The values of packed rows: f32(scale · code + bias), [rowCount · cols]. */
export function dequantizeRows(rows: AffineRows, format: AffineFormat): Float32Array {
  const codes = unpackCodes(rows.codes, format.bits);
  const values = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) {
    const group = Math.floor(i / format.groupSize);
    values[i] = fround(rows.scales[group]! * codes[i]!) + rows.biases[group]!;
  }
  return values;
}

function groupScale(
  values: Float32Array,
  start: number,
  length: number,
  codeMax: number,
): { scale: number; bias: number } {
  let low = values[start]!;
  let high = low;
  for (let i = start + 1; i < start + length; i++) {
    const value = values[i]!;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const step = Math.max(fround(fround(high - low) / codeMax), scaleMin);
  const lowIsEdge = Math.abs(low) > Math.abs(high);
  const edge = lowIsEdge ? low : high;
  const scale = lowIsEdge ? step : -step;
  const edgeCode = roundHalfEven(fround(edge / scale));
  return edgeCode === 0 ? { scale, bias: 0 } : { scale: fround(edge / edgeCode), bias: edge };
}

function roundHalfEven(value: number): number {
  return value + roundingMagic - roundingMagic;
}

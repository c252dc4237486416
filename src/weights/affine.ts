import { narrowToBf16 } from "./floats.ts";
import { unpackCodes } from "./packing.ts";
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
  const words = new Uint32Array((values.length * bits) / 32);
  const groupWords = (groupSize * bits) / 32;
  const scales = new Float32Array(groups);
  const biases = new Float32Array(groups);
  for (let group = 0; group < groups; group++) {
    const start = group * groupSize;
    const { scale, bias } = groupScale(values, start, groupSize, 2 ** bits - 1);
    packGroup(values, start, format, scale, bias, words, group * groupWords);
    scales[group] = scale;
    biases[group] = bias;
  }
  return {
    codes: new Uint8Array(words.buffer),
    scales: narrowToBf16(scales),
    biases: narrowToBf16(biases),
  };
}

/** Writes a group's codes as one little-endian bit stream, four at a time, from `words[out]` on. */
function packGroup(
  values: Float32Array,
  start: number,
  { bits, groupSize }: AffineFormat,
  scale: number,
  bias: number,
  words: Uint32Array,
  out: number,
): void {
  const codeMax = 2 ** bits - 1;
  const quadBits = 4 * bits;
  let at = out;
  let held = 0;
  let heldBits = 0;
  for (let i = start; i < start + groupSize; i += 4) {
    const quad =
      codeOf(values[i]!, scale, bias, codeMax) |
      (codeOf(values[i + 1]!, scale, bias, codeMax) << bits) |
      (codeOf(values[i + 2]!, scale, bias, codeMax) << (2 * bits)) |
      (codeOf(values[i + 3]!, scale, bias, codeMax) << (3 * bits));
    held |= quad << heldBits;
    heldBits += quadBits;
    if (heldBits < 32) continue;
    words[at++] = held;
    heldBits -= 32;
    // A shift by 32 would be one by 0.
    held = heldBits === 0 ? 0 : quad >>> (quadBits - heldBits);
  }
}

/**
 * The code of a value, clamped without branches: the edges of a group come too often and too
 * irregularly for a processor to foresee them.
 */
function codeOf(value: number, scale: number, bias: number, codeMax: number): number {
  const code = roundHalfEven(fround(fround(value - bias) / scale)) | 0;
  const over = codeMax - code;
  return (code & ~(code >> 31)) + (over & (over >> 31));
}

/** The values of packed rows: f32(scale · code + bias), [rowCount · cols]. */
export function dequantizeRows(rows: AffineRows, { bits, groupSize }: AffineFormat): Float32Array {
  const codes = unpackCodes(rows.codes, bits);
  const values = new Float32Array(codes.length);
  for (let group = 0; group < rows.scales.length; group++) {
    const scale = rows.scales[group]!;
    const bias = rows.biases[group]!;
    const end = (group + 1) * groupSize;
    for (let i = group * groupSize; i < end; i++) values[i] = fround(scale * codes[i]!) + bias;
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

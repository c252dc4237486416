import type { FloatType } from "./weights.ts";

/** Bytes of one value as stored. */
export const floatBytes: Readonly<Record<FloatType, number>> = { bf16: 2, f16: 2, f32: 4 };

const scratchFloat: Float32Array = new Float32Array(1);
const scratchBits: Uint32Array = new Uint32Array(scratchFloat.buffer);

/** The bf16 bits nearest to a value first rounded to f32; halves go to even, NaN stays NaN. */
export function bf16FromF32(value: number): number {
  scratchFloat[0] = value;
  return bf16FromF32Bits(scratchBits[0]!);
}

/** The value of 16 bf16 bits. */
export function f32FromBf16(bits: number): number {
  scratchBits[0] = bits << 16;
  return scratchFloat[0]!;
}

/** The f16 bits nearest to a value that is first rounded to f32; halves go to even. */
export function f16FromF32(value: number): number {
  scratchFloat[0] = value;
  const bits = scratchBits[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | ((magnitude >>> 13) & 0x1ff);
  if (magnitude >= 0x47800000) return sign | 0x7c00;
  if (magnitude < 0x38800000) return sign | f16Subnormal(magnitude);
  // Moving the exponent's origin leaves 13 bits too many; the carry may reach infinity, rightly.
  const moved = magnitude - 0x38000000;
  return sign | ((moved + 0xfff + ((moved >>> 13) & 1)) >>> 13);
}

/** The value of 16 f16 bits. */
export function f32FromF16(bits: number): number {
  scratchBits[0] = f32BitsFromF16(bits);
  return scratchFloat[0]!;
}

/**
 * Widens little-endian values to f32, exactly.
 *
 * @param bytes a whole number of values; may start at any alignment
 */
export function widen(bytes: Uint8Array, dtype: FloatType): Float32Array {
  const count = bytes.byteLength / floatBytes[dtype];
  if (dtype === "f32") return floatsOf(bytes);
  const values = new Float32Array(count);
  widenInto(values, bytes, dtype);
  return values;
}

/** `widen` into memory for as many values. */
export function widenInto(values: Float32Array, bytes: Uint8Array, dtype: FloatType): void {
  if (dtype === "f32") {
    values.set(floatsOf(bytes));
    return;
  }
  const own = aligned(bytes);
  const halves = new Uint16Array(own.buffer, own.byteOffset, values.length);
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  if (dtype === "bf16") for (let i = 0; i < bits.length; i++) bits[i] = halves[i]! << 16;
  else for (let i = 0; i < bits.length; i++) bits[i] = f32BitsFromF16(halves[i]!);
}

function floatsOf(bytes: Uint8Array): Float32Array {
  const own = aligned(bytes);
  return new Float32Array(own.buffer, own.byteOffset, own.byteLength / 4);
}

/** The same bytes, where a typed array may begin. */
const aligned = (bytes: Uint8Array): Uint8Array =>
  bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();

/** Rounds f32 values to bf16, halves to even. */
export function narrowToBf16(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const out = new Uint16Array(values.length);
  for (let i = 0; i < out.length; i++) out[i] = bf16FromF32Bits(bits[i]!);
  return out;
}

/** The bytes of a typed array, without a copy. */
export function bytesOf(array: Uint16Array | Float32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function bf16FromF32Bits(bits: number): number {
  // Rounding a NaN like a number could carry it into infinity.
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x40;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

function f16Subnormal(magnitude: number): number {
  const exponent = magnitude >>> 23;
  if (exponent < 102) return 0;
  const mantissa = (magnitude & 0x7fffff) | 0x800000;
  const shift = 126 - exponent;
  const kept = mantissa >>> shift;
  const rest = mantissa & ((1 << shift) - 1);
  const half = 1 << (shift - 1);
  return rest > half || (rest === half && (kept & 1) === 1) ? kept + 1 : kept;
}

function f32BitsFromF16(bits: number): number {
  const sign = (bits & 0x8000) << 16;
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return (sign | 0x7f800000 | (fraction << 13)) >>> 0;
  if (exponent !== 0) return (sign | ((exponent + 112) << 23) | (fraction << 13)) >>> 0;
  if (fraction === 0) return sign >>> 0;
  // A subnormal f16 is a normal f32: its leading one becomes the implicit bit.
  const shift = Math.clz32(fraction) - 21;
  return (sign | ((113 - shift) << 23) | (((fraction << shift) & 0x3ff) << 13)) >>> 0;
}

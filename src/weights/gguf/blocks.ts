import { f32FromF16, widen } from "../floats.ts";

/** One way in which GGUF files store values (ggml, `ggml-quants.c`). */
export interface GgufType {
  readonly name: string;
  /** Values that a block holds; they follow each other in a row. */
  readonly values: number;
  readonly bytes: number;
  /** Writes the values of whole blocks. */
  decode(blocks: Uint8Array, out: Float32Array): void;
}

const { fround } = Math;

/** By the type's number in the file. */
export const ggufTypes: ReadonlyMap<number, GgufType> = new Map([
  [0, floats("F32", 4, "f32")],
  [1, floats("F16", 2, "f16")],
  [30, floats("BF16", 2, "bf16")],
  [2, blocks("Q4_0", 32, 18, decodeQ4)],
  [8, blocks("Q8_0", 32, 34, decodeQ8)],
  [12, blocks("Q4_K", 256, 144, decodeQ4K)],
  [14, blocks("Q6_K", 256, 210, decodeQ6K)],
]);

function floats(name: string, bytes: number, type: "f32" | "f16" | "bf16"): GgufType {
  return { name, values: 1, bytes, decode: (from, out) => out.set(widen(from, type)) };
}

/** @param decode writes one block, which begins at `at`, from `out[to]` on */
function blocks(
  name: string,
  values: number,
  bytes: number,
  decode: (from: Uint8Array, at: number, out: Float32Array, to: number) => void,
): GgufType {
  return {
    name,
    values,
    bytes,
    decode(from, out) {
      for (let at = 0, to = 0; at < from.length; at += bytes, to += values) {
        decode(from, at, out, to);
      }
    },
  };
}

/** f16 scale; 16 bytes, whose low halves are the first 16 values and whose high ones the rest. */
function decodeQ4(from: Uint8Array, at: number, out: Float32Array, to: number): void {
  const scale = f16At(from, at);
  for (let i = 0; i < 16; i++) {
    const byte = from[at + 2 + i]!;
    out[to + i] = scale * ((byte & 15) - 8);
    out[to + 16 + i] = scale * ((byte >> 4) - 8);
  }
}

/** f16 scale; 32 signed bytes. */
function decodeQ8(from: Uint8Array, at: number, out: Float32Array, to: number): void {
  const scale = f16At(from, at);
  for (let i = 0; i < 32; i++) out[to + i] = scale * signed(from[at + 2 + i]!);
}

/**
 * f16 scale of scales and of minima; 12 bytes of eight 6-bit scales and minima; 128 bytes, of which each
 * 32 hold two groups of 32 values, in their low and in their high halves.
 */
function decodeQ4K(from: Uint8Array, at: number, out: Float32Array, to: number): void {
  const scale = f16At(from, at);
  const minimum = f16At(from, at + 2);
  const sixes = at + 4;
  for (let group = 0; group < 8; group++) {
    const groupScale = fround(scale * scaleQ4K(from, sixes, group));
    const groupMinimum = fround(minimum * minimumQ4K(from, sixes, group));
    const codes = at + 16 + 32 * (group >> 1);
    const shift = 4 * (group & 1);
    for (let i = 0; i < 32; i++) {
      const code = (from[codes + i]! >> shift) & 15;
      out[to + 32 * group + i] = fround(groupScale * code) - groupMinimum;
    }
  }
}

/** Scales 0–3 are the low 6 bits of bytes 0–3; 4–7 have 4 bits in bytes 8–11 and 2 atop bytes 0–3. */
function scaleQ4K(from: Uint8Array, at: number, group: number): number {
  if (group < 4) return from[at + group]! & 63;
  return (from[at + group + 4]! & 15) | ((from[at + group - 4]! >> 6) << 4);
}

/** The same of bytes 4–7, and the high halves of bytes 8–11. */
function minimumQ4K(from: Uint8Array, at: number, group: number): number {
  if (group < 4) return from[at + group + 4]! & 63;
  return (from[at + group + 4]! >> 4) | ((from[at + group]! >> 6) << 4);
}

/**
 * 128 bytes of low 4 bits, 64 of high 2 bits, 16 signed scales, one for 16 values, f16 scale of scales.
 * Each half of the block is four runs of 32 values: runs 0 and 1 have their low bits in the low halves
 * of 64 bytes, runs 2 and 3 in the high halves; run r has its high bits at bit 2r of 32 bytes.
 */
function decodeQ6K(from: Uint8Array, at: number, out: Float32Array, to: number): void {
  const scale = f16At(from, at + 208);
  for (let half = 0; half < 2; half++) {
    for (let run = 0; run < 4; run++) {
      const low = at + 64 * half + 32 * (run & 1);
      const high = at + 128 + 32 * half;
      const scales = at + 192 + 8 * half + 2 * run;
      const start = to + 128 * half + 32 * run;
      for (let i = 0; i < 32; i++) {
        const bits = (from[low + i]! >> (4 * (run >> 1))) & 15;
        const code = bits | (((from[high + i]! >> (2 * run)) & 3) << 4);
        out[start + i] = fround(scale * signed(from[scales + (i >> 4)]!)) * (code - 32);
      }
    }
  }
}

const signed = (byte: number): number => (byte << 24) >> 24;

const f16At = (from: Uint8Array, at: number): number =>
  f32FromF16(from[at]! | (from[at + 1]! << 8));

import { existsSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { readSafetensorsHeader } from "../checkpoint/safetensors.ts";
import { openFolder } from "../checkpoint/source-node.ts";
import { affineFormat, dequantizeRows } from "./affine.ts";
import { bf16FromF32, bytesOf, widen } from "./floats.ts";
import { weightsFromCheckpoint } from "./from-checkpoint.ts";
import { unpackCodes } from "./packing.ts";
import { quantizeGroups } from "./quantize.cases.ts";

const widths = [2, 3, 4, 5, 6, 8] as const;
const nano = join(import.meta.dirname, "../../../shared/models/nano");
const golden = join(import.meta.dirname, "../../fixtures/golden");

/** Codes as one little-endian bit stream, bit by bit. */
function packed(codes: Iterable<number>, bits: number): Uint8Array {
  let stream = 0n;
  let length = 0;
  for (const code of codes) {
    stream |= BigInt(code) << BigInt(length);
    length += bits;
  }
  return Uint8Array.from({ length: length / 8 }, (_, i) =>
    Number((stream >> BigInt(8 * i)) & 255n),
  );
}

describe("packing", () => {
  it.each(widths)("has code i at bits %i·i of one little-endian stream", (bits) => {
    const codes = fc.uint8Array({ minLength: 32, maxLength: 32, max: 2 ** bits - 1 });
    fc.assert(
      fc.property(codes, (values) => {
        expect(unpackCodes(packed(values, bits), bits)).toEqual(values);
      }),
      { numRuns: 200 },
    );
  });

  it("matches the written examples", () => {
    expect([...unpackCodes(Uint8Array.of(33, 67, 101, 135), 4)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const threes = unpackCodes(Uint8Array.of(0b11010001, 0b01011000, 0b00011111), 3);
    expect([...threes]).toEqual([1, 2, 3, 4, 5, 6, 7, 0]);
  });
});

/** One group by the rules of docs/formats.md, each step as it stands there. */
function quantizedGroup(values: Float32Array, bits: number) {
  const { fround } = Math;
  const halfEven = (value: number) => {
    const floor = Math.floor(value);
    const rest = value - floor;
    return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
  };
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const step = Math.max(fround(fround(high - low) / (2 ** bits - 1)), fround(1e-7));
  const [first, edge] = Math.abs(low) > Math.abs(high) ? [step, low] : [-step, high];
  const code0 = halfEven(fround(edge / first));
  const [scale, bias] = code0 === 0 ? [first, 0] : [fround(edge / code0), edge];
  const codes = [...values].map((value) => {
    const code = halfEven(fround(fround(value - bias) / scale));
    return Math.min(Math.max(code, 0), 2 ** bits - 1);
  });
  return { codes, scale: bf16FromF32(scale), bias: bf16FromF32(bias) };
}

describe("quantizeGroups", () => {
  it.each(widths)("equals the written rules, %i bits", (bits) => {
    // Few values of bf16, so that halves and equal edges come often; and all magnitudes.
    const coarse = fc.integer({ min: -64, max: 64 }).map((value) => value / 16);
    const any = fc.float({ noNaN: true, noDefaultInfinity: true, min: -(2 ** 100), max: 2 ** 100 });
    const groups = fc.oneof(
      ...[coarse, any].map((value) => fc.array(value, { minLength: 64, maxLength: 64 })),
    );
    fc.assert(
      fc.property(groups, fc.constantFrom(32 as const, 64 as const), (list, groupSize) => {
        const values = Float32Array.from(list);
        const made = quantizeGroups(values, { bits, groupSize });
        const expected = Array.from({ length: 64 / groupSize }, (_, group) =>
          quantizedGroup(values.subarray(group * groupSize, (group + 1) * groupSize), bits),
        );
        expect(made.codes).toEqual(
          packed(
            expected.flatMap(({ codes }) => codes),
            bits,
          ),
        );
        expect([...made.scales]).toEqual(expected.map(({ scale }) => scale));
        expect([...made.biases]).toEqual(expected.map(({ bias }) => bias));
      }),
      { numRuns: 500 },
    );
  });

  it.each(widths)("makes of many groups what it makes of each, %i bits", (bits) => {
    const format = { bits, groupSize: 128 } as const;
    const values = Float32Array.from({ length: 2 ** 15 + 128 }, (_, i) => Math.sin(i * i) / 16);
    const made = quantizeGroups(values, format);
    const groups = Array.from({ length: values.length / 128 }, (_, group) =>
      quantizeGroups(values.subarray(group * 128, (group + 1) * 128), format),
    );
    expect(Buffer.compare(made.codes, Buffer.concat(groups.map(({ codes }) => codes)))).toBe(0);
    expect([...made.scales]).toEqual(groups.map(({ scales }) => scales[0]));
    expect([...made.biases]).toEqual(groups.map(({ biases }) => biases[0]));
  });

  it.each(widths)("errs by at most half a step and bf16's rounding, %i bits", (bits) => {
    const finite = fc.float({ noNaN: true, noDefaultInfinity: true, min: -100, max: 100 });
    const group = fc.float32Array({
      ...{ noNaN: true, min: -100, max: 100 },
      minLength: 32,
      maxLength: 32,
    });
    fc.assert(
      fc.property(group, finite, (values, shift) => {
        const moved = values.map((value) => value + shift);
        const format = { bits, groupSize: 32 } as const;
        const { codes, scales, biases } = quantizeGroups(moved, format);
        const rows = {
          codes,
          scales: widen(bytesOf(scales), "bf16"),
          biases: widen(bytesOf(biases), "bf16"),
        };
        const back = dequantizeRows(rows, format);
        const largest = Math.max(...moved.map(Math.abs));
        const span = Math.max(...moved, 0) - Math.min(...moved, 0);
        // Snapping zero to a code can widen the step by up to half of its own.
        const allowed = span / (2 ** bits - 1) + largest * 2 ** -6 + 1e-6;
        for (const [i, value] of moved.entries()) {
          expect(Math.abs(back[i]! - value)).toBeLessThanOrEqual(allowed);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("keeps a group of equal values, as large as floats get", () => {
    for (const value of [2 ** -100, -3, 2 ** 40, 2 ** 127]) {
      const values = new Float32Array(32).fill(value);
      const { codes, biases } = quantizeGroups(values, { bits: 4, groupSize: 32 });
      expect(new Set(codes)).toEqual(new Set([0]));
      expect(biases[0]).toBe(value === 2 ** -100 ? 0 : bf16FromF32(value));
    }
  });

  it("keeps zeros zero, and takes a negative scale when the high edge is the larger", () => {
    const zeros = quantizeGroups(new Float32Array(32), { bits: 4, groupSize: 32 });
    expect(new Set(zeros.codes)).toEqual(new Set([0]));
    expect(zeros.biases[0]! & 0x7fff).toBe(0);
    const rising = Float32Array.from({ length: 32 }, (_, i) => i);
    const { scales } = quantizeGroups(rising, { bits: 8, groupSize: 32 });
    expect(widen(bytesOf(scales), "bf16")[0]).toBeLessThan(0);
  });

  it("knows the formats that MLX defines", () => {
    expect(affineFormat(3, 128)).toEqual({ bits: 3, groupSize: 128 });
    expect(affineFormat(7, 64)).toBeNull();
    expect(affineFormat(4, 48)).toBeNull();
  });

  describe.skipIf(!existsSync(nano))("on the originals in ../shared/models/nano", () => {
    it.each([
      [4, "down_proj0", "layers.0.mlp.down_proj"],
      [8, "down_proj0", "layers.0.mlp.down_proj"],
      [4, "in_proj_a0", "layers.0.linear_attn.in_proj_a"],
      [8, "in_proj_a0", "layers.0.linear_attn.in_proj_a"],
    ] as const)("equals the golden bytes: %i bits, %s", async (bits, name, path) => {
      await using checkpoint = await openCheckpoint(await openFolder(nano));
      const matrix = (await weightsFromCheckpoint(checkpoint)).matrix(path);
      if (matrix.kind !== "dense") throw new Error("the originals are floats");
      const values = widen(await matrix.read(0, matrix.rows), matrix.dtype);
      const made = quantizeGroups(values, { bits, groupSize: 64 });
      const source = await (await openFolder(golden)).open("nano_trace.safetensors");
      const { tensors } = await readSafetensorsHeader(source);
      const expected = async (part: string) => {
        const entry = tensors.find((tensor) => tensor.name === `q${bits}.${name}.${part}`);
        return source.read(entry?.offset ?? 0, entry?.bytes ?? 0);
      };
      expect(made.codes).toEqual(await expected("weight"));
      expect(bytesOf(made.scales)).toEqual(await expected("scales"));
      expect(bytesOf(made.biases)).toEqual(await expected("biases"));
      await source.close();
    });
  });
});

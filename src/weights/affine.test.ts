import { existsSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { readSafetensorsHeader } from "../checkpoint/safetensors.ts";
import { openFolder } from "../checkpoint/source-node.ts";
import { affineFormat, dequantizeRows, quantizeGroups } from "./affine.ts";
import { bytesOf, widen } from "./floats.ts";
import { weightsFromCheckpoint } from "./from-checkpoint.ts";
import { packCodes, unpackCodes } from "./packing.ts";

const widths = [2, 3, 4, 5, 6, 8] as const;
const nano = join(import.meta.dirname, "../../../shared/models/nano");
const golden = join(import.meta.dirname, "../../fixtures/golden");

describe("packing", () => {
  it.each(widths)("puts code i at bits %i·i of one little-endian stream", (bits) => {
    const codes = fc.uint8Array({ minLength: 32, maxLength: 32, max: 2 ** bits - 1 });
    fc.assert(
      fc.property(codes, (values) => {
        const packed = packCodes(values, bits);
        expect(packed.length).toBe(4 * bits);
        let stream = 0n;
        for (const byte of [...packed].reverse()) stream = (stream << 8n) | BigInt(byte);
        for (const [i, code] of values.entries()) {
          const found = (stream >> BigInt(bits * i)) & BigInt(2 ** bits - 1);
          expect(Number(found)).toBe(code);
        }
        expect(unpackCodes(packed, bits)).toEqual(values);
      }),
      { numRuns: 200 },
    );
  });

  it("matches the written examples", () => {
    expect([...packCodes(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8), 4)]).toEqual([33, 67, 101, 135]);
    const threes = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 0);
    expect([...packCodes(threes, 3)]).toEqual([0b11010001, 0b01011000, 0b00011111]);
  });
});

describe("quantizeGroups", () => {
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

import { describe, expect, it } from "vitest";
import { bf16FromF32, f16FromF32, f32FromBf16, f32FromF16, narrowToBf16, widen } from "./floats.ts";

const all = Uint16Array.from({ length: 65536 }, (_, i) => i);
const allBytes = new Uint8Array(all.buffer);

/** What the bits of a binary format mean, from its definition. */
function meaning(bits: number, exponentBits: number): number {
  const fractionBits = 15 - exponentBits;
  const bias = 2 ** (exponentBits - 1) - 1;
  const sign = bits >>> 15 === 1 ? -1 : 1;
  const exponent = (bits >>> fractionBits) & (2 ** exponentBits - 1);
  const fraction = (bits & (2 ** fractionBits - 1)) / 2 ** fractionBits;
  if (exponent === 2 ** exponentBits - 1) return fraction === 0 ? sign * Infinity : Number.NaN;
  if (exponent === 0) return sign * fraction * 2 ** (1 - bias);
  return sign * (1 + fraction) * 2 ** (exponent - bias);
}

describe.each([
  { dtype: "bf16", exponentBits: 8, toF32: f32FromBf16, fromF32: bf16FromF32 },
  { dtype: "f16", exponentBits: 5, toF32: f32FromF16, fromF32: f16FromF32 },
] as const)("$dtype", ({ dtype, exponentBits, toF32, fromF32 }) => {
  it("widens all 65,536 values as the format defines them", () => {
    const widened = widen(allBytes, dtype);
    for (const bits of all) {
      const value = meaning(bits, exponentBits);
      if (!Object.is(toF32(bits), value)) expect.fail(`${bits}: ${toF32(bits)}, not ${value}`);
      if (!Object.is(widened[bits], value)) expect.fail(`${bits}: ${widened[bits]}, not ${value}`);
    }
  });

  it("narrows all 65,536 values to themselves, and NaN to a NaN of its sign", () => {
    for (const bits of all) {
      const back = fromF32(toF32(bits));
      const value = meaning(bits, exponentBits);
      if (Number.isNaN(value) ? !Number.isNaN(toF32(back)) : back !== bits) {
        expect.fail(`${bits} became ${back}`);
      }
    }
  });

  it("rounds between every two neighbours: down, up, and halves to even", () => {
    const infinity = fromF32(Number.POSITIVE_INFINITY);
    for (let bits = 0; bits < infinity; bits++) {
      const low = toF32(bits);
      // Past the largest value the next step would be where infinity begins.
      const high = bits + 1 === infinity ? 2 * low - toF32(bits - 1) : toF32(bits + 1);
      const step = high - low;
      const half = bits % 2 === 0 ? bits : bits + 1;
      const got = [0.25, 0.5, 0.75].map((part) => fromF32(low + part * step));
      // The lowest bf16 subnormals have f32 neighbours enough, so all three are exact.
      if (got[0] !== bits || got[1] !== half || got[2] !== bits + 1) {
        expect.fail(`between ${bits} and ${bits + 1}: ${got}`);
      }
      if (fromF32(-(low + 0.75 * step)) !== bits + 1 + 0x8000) expect.fail(`-${bits}`);
    }
  });

  it("keeps infinities and both zeros", () => {
    for (const value of [Infinity, -Infinity, 0, -0]) {
      expect(Object.is(toF32(fromF32(value)), value)).toBe(true);
    }
  });
});

describe("arrays", () => {
  it("keep NaN payloads' sign and kind", () => {
    const nan = new Float32Array(new Uint32Array([0x7f800001, 0xffffffff]).buffer);
    expect([...narrowToBf16(nan)]).toEqual([0x7fc0, 0xffff]);
  });

  it("widen from any alignment", () => {
    const bytes = new Uint8Array(9);
    bytes.set(new Uint8Array(Float32Array.of(1.5, -2).buffer), 1);
    expect([...widen(bytes.subarray(1), "f32")]).toEqual([1.5, -2]);
    expect([...widen(bytes.subarray(3, 5), "bf16")]).toEqual([1.5]);
  });
});

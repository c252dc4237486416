import fc from "fast-check";
import { expect, test } from "vitest";
import { KeyedNoise, mix } from "./keyed.ts";

const wrap = (x: bigint) => BigInt.asUintN(64, x);

function mixBig(value: bigint): bigint {
  let x = value ^ (value >> 30n);
  x = wrap(x * 0xbf58476d1ce4e5b9n);
  x ^= x >> 27n;
  x = wrap(x * 0x94d049bb133111ebn);
  return x ^ (x >> 31n);
}

function uniformBig(seed: bigint, position: number, id: number): number {
  const seeded = mixBig(wrap(seed + 0x9e3779b97f4a7c15n));
  const placed = mixBig(seeded ^ wrap(BigInt(position) * 0xd1b54a32d192ed03n));
  return Number(mixBig(placed ^ BigInt(id)) >> 11n) * 2 ** -53 + 2 ** -54;
}

test("mix equals the 64-bit arithmetic", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (x) => {
      const limbs = new Uint32Array([Number(x & 0xffffffffn), Number(x >> 32n)]);
      mix(limbs);
      expect((BigInt(limbs[1]!) << 32n) | BigInt(limbs[0]!)).toBe(mixBig(x));
    }),
    { numRuns: 500 },
  );
});

test("uniform equals the 64-bit arithmetic", () => {
  const seed = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
  const position = fc.oneof(fc.nat(2 ** 20), fc.maxSafeNat());
  fc.assert(
    fc.property(seed, position, fc.nat(2 ** 18), (s, p, id) => {
      expect(new KeyedNoise(s, p).uniform(id)).toBe(uniformBig(s, p, id));
    }),
    { numRuns: 500 },
  );
});

// Computed with numpy from the formulas of docs/exactness.md.
test.each([
  [0n, 0, 0, 0.20310281705476102, -0.4662735186548661],
  [1n, 2, 3, 0.8953305244224121, 2.2021758640876974],
  [2n ** 64n - 1n, 4095, 248076, 0.48068264337920336, 0.3112263952494668],
  [1234567890123456789n, 1000000, 151643, 0.6416982847522261, 0.812748512106269],
])("seed %s, position %i, id %i", (seed, position, id, uniform, gumbel) => {
  const noise = new KeyedNoise(seed, position);
  expect(noise.uniform(id)).toBe(uniform);
  expect(noise.gumbel(id)).toBeCloseTo(gumbel, 14);
});

test("a row's noise does not depend on the order in which ids are asked", () => {
  const noise = new KeyedNoise(5n, 6);
  const first = [1, 2, 3].map((id) => noise.uniform(id));
  expect([3, 2, 1].map((id) => noise.uniform(id)).reverse()).toEqual(first);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { orderCandidates } from "../backend/candidates.ts";
import { type DrawParams, drawToken } from "./draw.ts";
import { KeyedNoise } from "./keyed.ts";
import { candidatesNeeded } from "./params.ts";

function draw(logits: Float32Array, params: DrawParams, position: number): number {
  return drawToken(orderCandidates(logits, candidatesNeeded(params), position), params, position);
}

function sampling(temperature: number, topK: number, topP: number, minP: number, seed = 42n) {
  return { temperature, topK, topP, minP, seed };
}

// Drawn with numpy from the algorithm of docs/exactness.md, seed 42, positions 0 to 7.
test.each([
  [sampling(1, 0, 1, 0), [298, 507, 457, 38, 570, 151, 569, 494]],
  [sampling(0.7, 20, 0.8, 0), [383, 494, 457, 62, 383, 593, 309, 494]],
  [sampling(2, 0, 0.9, 0.05), [298, 507, 457, 227, 570, 151, 569, 494]],
  [sampling(0.3, 5, 1, 0.2), [136, 494, 457, 494, 457, 494, 136, 494]],
  [sampling(1.5, 0, 0.5, 0), [298, 507, 457, 409, 409, 593, 569, 494]],
  [sampling(1e-9, 0, 1, 0), Array(8).fill(494)],
  [sampling(0, 0, 1, 0), Array(8).fill(494)],
])("%o draws the reference's tokens", (params, expected) => {
  const logits = Float32Array.from({ length: 600 }, (_, id) => ((id * 7919 + 13) % 1000) / 125);
  expect(expected.map((_, position) => draw(logits, params, position))).toEqual(expected);
});

test("by hand: the larger of two scaled logits plus noise", () => {
  for (let position = 0; position < 50; position++) {
    const noise = new KeyedNoise(3n, position);
    const second = 1 / 0.5 + noise.gumbel(1) > 2 / 0.5 + noise.gumbel(0);
    const params = sampling(0.5, 0, 1, 0, 3n);
    expect(draw(Float32Array.of(2, 1), params, position)).toBe(second ? 1 : 0);
  }
});

test("min_p keeps by the likeliest token's share, after top_p", () => {
  const logits = Float32Array.of(0, -1, -2, -3);
  const seen = (minP: number) =>
    new Set(Array.from({ length: 2000 }, (_, at) => draw(logits, sampling(1, 0, 1, minP), at)));
  expect(seen(0)).toEqual(new Set([0, 1, 2, 3]));
  expect(seen(Math.exp(-2.5))).toEqual(new Set([0, 1, 2]));
  expect(seen(1)).toEqual(new Set([0]));
});

test("draws follow the softmax", () => {
  const logits = Float32Array.of(1, 0, 2, -1, 0.5);
  const weights = Array.from(logits, (logit) => Math.exp(logit / 0.8));
  const total = weights.reduce((a, b) => a + b);
  const draws = 20_000;
  for (const seed of [1n, 2n ** 63n]) {
    const counts = new Array<number>(5).fill(0);
    for (let at = 0; at < draws; at++) counts[draw(logits, sampling(0.8, 0, 1, 0, seed), at)]!++;
    const chiSquare = weights.reduce((sum, weight, id) => {
      const expected = (draws * weight) / total;
      return sum + (counts[id]! - expected) ** 2 / expected;
    }, 0);
    // Four degrees of freedom: 18.5 is passed once in a thousand, and the seeds are fixed.
    expect(chiSquare).toBeLessThan(18.5);
  }
});

const row = fc
  .array(fc.integer({ min: -40, max: 40 }), { minLength: 1, maxLength: 120 })
  .map((x) => Float32Array.from(x, (value) => value / 8));
const params = fc.record({
  temperature: fc.double({ min: 0, max: 2, noNaN: true }),
  topK: fc.nat(130),
  topP: fc.double({ min: 0.05, max: 1, noNaN: true }),
  minP: fc.double({ min: 0, max: 1, noNaN: true }),
  seed: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
});

test("a cut candidate list draws what the whole order draws", () => {
  fc.assert(
    fc.property(row, params, fc.nat(5000), (logits, p, position) => {
      const whole = drawToken(orderCandidates(logits, 0, position), p, position);
      expect(draw(logits, p, position)).toBe(whole);
    }),
  );
});

test("earlier and interleaved draws change nothing", () => {
  fc.assert(
    fc.property(row, row, params, fc.nat(5000), (logits, others, p, position) => {
      const alone = draw(logits, p, position);
      draw(others, p, position);
      draw(logits, { ...p, seed: p.seed ^ 1n }, position + 1);
      expect(draw(logits.slice(), { ...p }, position)).toBe(alone);
    }),
  );
});

test("likelier duplicates aside, unrelated low rows do not move a top-k draw", () => {
  const logits = Float32Array.of(5, 4, 3, 2, 1);
  const wider = Float32Array.of(5, 4, 3, 2, 1, -7, -8, -9);
  for (let at = 0; at < 200; at++) {
    const p = sampling(1, 3, 0.9, 0);
    expect(draw(wider, p, at)).toBe(draw(logits, p, at));
  }
});

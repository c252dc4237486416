import fc from "fast-check";
import { expect, test } from "vitest";
import { NonFiniteLogitsError } from "../errors.ts";
import { orderCandidates } from "./candidates.ts";

function ordered(logits: Float32Array, count: number): number[] {
  const ids = Array.from(logits, (_, id) => id);
  ids.sort((a, b) => logits[b]! - logits[a]! || a - b);
  return ids.slice(0, count === 0 ? ids.length : count);
}

test("the lowest id wins among equal logits, at every count", () => {
  const logits = Float32Array.of(1, 3, 3, -2, 3, 1);
  for (let count = 0; count <= 6; count++) {
    expect([...orderCandidates(logits, count, 0).ids]).toEqual(ordered(logits, count));
  }
});

test("zeros of both signs are equal", () => {
  const logits = Float32Array.of(-1, 0, -0, 0, -0);
  expect([...orderCandidates(logits, 0, 0).ids]).toEqual([1, 2, 3, 4, 0]);
  const wide = new Float32Array(200).map((_, id) => (id % 2 === 0 ? -0 : 0));
  expect([...orderCandidates(wide, 0, 0).ids]).toEqual(Array.from(wide, (_, id) => id));
});

test("both ways of ordering agree with a comparison sort", () => {
  const logit = fc.oneof(
    fc.integer({ min: -3, max: 3 }),
    fc.float({ noNaN: true, noDefaultInfinity: true }),
  );
  const row = fc.array(logit, { minLength: 1, maxLength: 150 }).map((x) => new Float32Array(x));
  fc.assert(
    fc.property(row, fc.nat(200), (logits, count) => {
      const { ids, logits: values } = orderCandidates(logits, count, 0);
      expect([...ids]).toEqual(ordered(logits, count));
      expect([...values]).toEqual([...ids].map((id) => logits[id]));
    }),
  );
});

test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
  "%s anywhere in the row is an error, not a token",
  (broken) => {
    const logits = new Float32Array(100).fill(1);
    logits[99] = broken;
    for (const count of [0, 1, 20]) {
      expect(() => orderCandidates(logits, count, 17)).toThrow(NonFiniteLogitsError);
      expect(() => orderCandidates(logits, count, 17)).toThrow("position 17");
    }
  },
);

import { expect, test } from "vitest";
import { orderCandidates } from "../backend/candidates.ts";
import { InvariantError } from "../errors.ts";
import { chancesOf } from "./chances.ts";

// Probabilities of 1/2, 1/4, 1/8, 1/8 in an order of their own, far from zero.
const row = orderCandidates(
  Float32Array.from([-1, 0, -2, -2], (halvings) => 1000 + Math.LN2 * halvings),
  0,
  0,
);

test("a chance is the log softmax of the whole row", () => {
  const chances = chancesOf(row, 0, 0);
  expect(chances).toEqual({ id: 0, logprob: expect.closeTo(Math.log(1 / 4), 4), top: [] });
});

test("the likeliest come first, the lower id before its equal, and no more than there are", () => {
  const near = (id: number, probability: number) => ({
    id,
    logprob: expect.closeTo(Math.log(probability), 4),
  });
  expect(chancesOf(row, 3, 3).top).toEqual([near(1, 1 / 2), near(0, 1 / 4), near(2, 1 / 8)]);
  expect(chancesOf(row, 3, 20).top).toHaveLength(4);
  expect(chancesOf(row, 3, 1)).toMatchObject({ id: 3, logprob: expect.closeTo(-Math.log(8), 4) });
});

test("a row of one token is certain", () => {
  const one = orderCandidates(Float32Array.of(-5), 0, 0);
  expect(chancesOf(one, 0, 1)).toEqual({ id: 0, logprob: 0, top: [{ id: 0, logprob: 0 }] });
});

test("a token that its row doesn't have is a bug", () => {
  expect(() => chancesOf(row, 4, 1)).toThrow(InvariantError);
});

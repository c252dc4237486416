import { expect, test } from "vitest";
import { NonFiniteLogitsError } from "../errors.ts";
import { slotId } from "../ids.ts";
import { planPass } from "../model/plan.ts";
import { drawCandidates, lazyDraws } from "./draw-candidates.ts";

const part = (slot: number, candidates: number, keepLogits: boolean, window = false) => ({
  ids: [1],
  start: 4,
  stateSlot: slotId(slot),
  nextSlot: slotId(slot),
  pages: [],
  draw: "last" as const,
  candidates,
  keepLogits,
  window,
});

test("a draw is made once, when it is first looked at", () => {
  const made: number[] = [];
  const error = new NonFiniteLogitsError(3);
  const make = (index: number) => () => {
    made.push(index);
    return error;
  };
  const draws = lazyDraws([0, 1, 2].map(make));
  expect(draws).toHaveLength(3);
  expect(made).toEqual([]);
  expect([draws[1], draws[1]]).toEqual([error, error]);
  expect(made).toEqual([1]);
  expect([...draws]).toEqual([error, error, error]);
  expect(made).toEqual([1, 0, 2]);
});

test.each([1, 2, 0])("draws of %i candidates outlive the pass's memory", (candidates) => {
  const memory = Float32Array.of(1, 3, 2, 3);
  const kept = new Map();
  const plan = planPass([part(0, candidates, true), part(1, candidates, true, true)]);
  const draws = drawCandidates(plan, () => memory, kept);
  memory.fill(Number.NaN);
  const ids = [1, 3, 2, 0].slice(0, candidates || 4);
  const logits = [3, 3, 2, 1].slice(0, candidates || 4);
  const expected = { ids: Int32Array.from(ids), logits: Float32Array.from(logits) };
  expect(draws).toEqual([expected, expected]);
  // A window's wait for its keep.
  expect([...kept]).toEqual([[slotId(0), Float32Array.of(1, 3, 2, 3)]]);
});

test("a row that isn't finite fails alone, and says where", () => {
  const rows = [Float32Array.of(1, Number.NaN), Float32Array.of(1, 2)];
  const plan = planPass([part(0, 0, false), part(1, 0, false)]);
  const draws = drawCandidates(plan, (draw) => rows[draw]!, new Map());
  expect(draws[0]).toEqual(new NonFiniteLogitsError(5));
  expect(draws[1]).toMatchObject({ ids: Int32Array.of(1, 0) });
});

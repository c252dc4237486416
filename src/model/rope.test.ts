import { expect, test } from "vitest";
import { drafterRotation, rotationOf, writeRope } from "./rope.ts";
import { tinyShape } from "./tiny-shape.ts";

test("a table holds the cosines and sines of each pair, scaled", () => {
  const table = new Float32Array(2 * 8);
  writeRope(table, Int32Array.of(0, 3), { frequencies: [1, 0.1, 0.01, 0.001], scale: 2 });
  expect([...table.slice(0, 8)]).toEqual([2, 2, 2, 2, 0, 0, 0, 0]);
  expect(table[8]).toBeCloseTo(2 * Math.cos(3), 6);
  expect(table[13]).toBeCloseTo(2 * Math.sin(0.3), 6);
});

test("a model rotates the leading dims, a drafter without yarn all of a head's", () => {
  const model = rotationOf(tinyShape({ rotaryDim: 8, ropeTheta: 10_000 }));
  expect(model.scale).toBe(1);
  model.frequencies.forEach((frequency, i) => {
    expect(frequency).toBeCloseTo(10 ** -i, 12);
  });
  const drafter = drafterRotation({ theta: 10_000, yarn: null }, 8);
  expect(drafter).toEqual(model);
});

test("yarn keeps fast pairs, divides slow ones and blends between", () => {
  const yarn = {
    factor: 4,
    originalContext: 128,
    betaFast: 32,
    betaSlow: 1,
    attentionFactor: 0.1 * Math.log(4) + 1,
  };
  const { frequencies, scale } = drafterRotation({ theta: 10_000, yarn }, 16);
  const plain = Array.from({ length: 8 }, (_, i) => 10_000 ** (-i / 8));
  // Pairs turn 32 times in 128 positions at −0.39, which is cut to 0, and once at 2.62, rounded up to 3.
  const kept = [1, 2 / 3, 1 / 3, 0, 0, 0, 0, 0];
  frequencies.forEach((frequency, i) => {
    const expected = plain[i]! * kept[i]! + (plain[i]! / 4) * (1 - kept[i]!);
    expect(frequency).toBeCloseTo(expected, 12);
  });
  expect(scale).toBeCloseTo(1.1386294, 7);
});

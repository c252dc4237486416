import { expect, test } from "vitest";
import {
  adjustLogit,
  adjusts,
  type LogitAdjustments,
  noAdjustments,
  type TokenUse,
} from "./adjust.ts";

const unused: TokenUse = { seen: false, count: 0, bias: 0 };
const inPrompt: TokenUse = { seen: true, count: 0, bias: 0 };
const threeTimes: TokenUse = { seen: true, count: 3, bias: 0 };
const biased = (bias: number, use = unused): TokenUse => ({ ...use, bias });
const repetition: Partial<LogitAdjustments> = { repetitionPenalty: 2 };
const presence: Partial<LogitAdjustments> = { presencePenalty: 0.5 };
const frequency: Partial<LogitAdjustments> = { frequencyPenalty: 0.25 };
const all = { ...repetition, ...presence, ...frequency };

test.each<[number, TokenUse, Partial<LogitAdjustments>, number]>([
  [3, unused, all, 3],
  [3, inPrompt, {}, 3],
  [3, inPrompt, repetition, 1.5],
  [-3, inPrompt, repetition, -6],
  [0, inPrompt, repetition, 0],
  [3, inPrompt, { repetitionPenalty: 0.5 }, 6],
  [3, inPrompt, presence, 3],
  [3, threeTimes, presence, 2.5],
  [3, threeTimes, { presencePenalty: -2 }, 5],
  [3, inPrompt, frequency, 3],
  [3, threeTimes, frequency, 2.25],
  [3, threeTimes, { frequencyPenalty: -1 }, 6],
  [3, biased(-5), {}, -2],
  // 8 / 2 − 0.75 − 0.5 + 10: the bias is neither divided nor multiplied.
  [8, biased(10, threeTimes), all, 12.75],
  [-8, biased(10, threeTimes), all, -7.25],
])("by hand: %d, used %o, by %o", (logit, use, adjust, expected) => {
  expect(adjustLogit(logit, use, { ...noAdjustments, ...adjust })).toBe(expected);
});

test("the result is rounded to f32 once, at the end", () => {
  const adjust = (
    repetitionPenalty: number,
    frequencyPenalty: number,
    presencePenalty: number,
  ) => ({
    ...noAdjustments,
    repetitionPenalty,
    frequencyPenalty,
    presencePenalty,
  });
  const once = (bias: number) => biased(bias, { seen: true, count: 1, bias: 0 });
  // Above 2^24 f32 has even numbers alone: each 2^24 + 1 or + 3 in between would be rounded.
  expect(adjustLogit(-1, once(-2), adjust(2 ** 24 + 1, 0, 0))).toBe(-(2 ** 24 + 4));
  expect(adjustLogit(2 ** 24, once(0), adjust(1, -1, -2))).toBe(2 ** 24 + 4);
  expect(adjustLogit(2 ** 24, once(-1), adjust(1, -2, -1))).toBe(2 ** 24 + 2);
  expect(adjustLogit(1, inPrompt, adjust(3, 0, 0))).toBe(Math.fround(1 / 3));
});

test("no penalty makes a logit infinite", () => {
  const largest = Float32Array.of(3.4028234663852886e38)[0];
  const huge = { ...noAdjustments, repetitionPenalty: 1e308 };
  const tiny = { ...noAdjustments, repetitionPenalty: Number.MIN_VALUE };
  expect(adjustLogit(-100, inPrompt, huge)).toBe(-largest!);
  expect(adjustLogit(100, inPrompt, tiny)).toBe(largest);
});

test("adjusts says whether any of the four is on", () => {
  expect(adjusts(noAdjustments)).toBe(false);
  expect(adjusts({ ...noAdjustments, repetitionPenalty: 0.9 })).toBe(true);
  expect(adjusts({ ...noAdjustments, presencePenalty: -0.1 })).toBe(true);
  expect(adjusts({ ...noAdjustments, frequencyPenalty: 0.1 })).toBe(true);
  expect(adjusts({ ...noAdjustments, logitBias: new Map([[1, 1]]) })).toBe(true);
});

import { expect, test } from "vitest";
import { InputError } from "../errors.ts";
import {
  candidatesNeeded,
  plainSampling,
  resolveSampling,
  type SamplingFields,
  withSeed,
} from "./params.ts";
import { promptSeed } from "./seed.ts";

const defaults = { ...plainSampling, topK: 20, topP: 0.95 };

test("null and absent fields take the defaults", () => {
  const fields = { temperature: null, top_k: null, top_p: null, min_p: null, seed: null };
  expect(resolveSampling(fields, defaults)).toEqual({ ...defaults, seed: null });
  expect(resolveSampling({}, defaults)).toEqual({ ...defaults, seed: null });
});

test("given fields win, zero included", () => {
  const fields = { temperature: 0, top_k: 0, top_p: 1, min_p: 0.5, seed: 0 };
  const chosen = { temperature: 0, topK: 0, topP: 1, minP: 0.5, seed: 0n };
  expect(resolveSampling(fields, defaults)).toEqual({ ...plainSampling, ...chosen });
});

test("what is done to the logits is resolved with the rest", () => {
  const { adjust } = resolveSampling({ presence_penalty: 1, logit_bias: { 7: 2 } }, defaults);
  const expected = { presencePenalty: 1, logitBias: new Map([[7, 2]]) };
  expect(adjust).toEqual({ ...plainSampling.adjust, ...expected });
});

test("a negative top_k is off", () => {
  expect(resolveSampling({ top_k: -1 }, defaults).topK).toBe(0);
});

test.each([
  [-1, 2n ** 64n - 1n],
  [Number.MAX_SAFE_INTEGER, 2n ** 53n - 1n],
  [2n ** 64n - 1n, 2n ** 64n - 1n],
  [-(2n ** 63n), 2n ** 63n],
])("seed %s", (seed, expected) => {
  expect(resolveSampling({ seed }, defaults).seed).toBe(expected);
});

const bad: [keyof SamplingFields, unknown[]][] = [
  ["temperature", [-0.1, Number.NaN, Number.POSITIVE_INFINITY, true, "1", [], {}]],
  ["top_k", [1.5, Number.NaN, false, "20", 1e300]],
  ["top_p", [0, -0.1, 1.0001, Number.NaN, true, "0.9"]],
  ["min_p", [-0.1, 1.1, Number.NaN, true]],
  ["seed", [1.5, 2 ** 53, Number.NaN, true, "7", 2n ** 64n, -(2n ** 63n) - 1n]],
];

test.each(bad.flatMap(([name, values]) => values.map((value) => [name, value] as const)))(
  "%s: %s is refused by name",
  (name, value) => {
    const attempt = () => resolveSampling({ [name]: value }, defaults);
    expect(attempt).toThrow(InputError);
    expect(attempt).toThrow(expect.objectContaining({ status: 400, param: name }));
  },
);

test("a seed is derived only where none was given", () => {
  const choice = resolveSampling({}, defaults);
  expect(withSeed(choice, [1, 2]).seed).toBe(promptSeed([1, 2]));
  expect(withSeed(choice, [1, 2], 3).seed).toBe(promptSeed([1, 2], 3));
  expect(withSeed({ ...choice, seed: 9n }, [1, 2]).seed).toBe(9n);
});

test("candidatesNeeded", () => {
  expect(candidatesNeeded({ temperature: 0, topK: 0 })).toBe(1);
  expect(candidatesNeeded({ temperature: 0, topK: 40 })).toBe(1);
  expect(candidatesNeeded({ temperature: 1, topK: 40 })).toBe(40);
  expect(candidatesNeeded({ temperature: 1, topK: 0 })).toBe(0);
});

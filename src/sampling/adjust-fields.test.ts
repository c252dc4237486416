import { expect, test } from "vitest";
import { InputError } from "../errors.ts";
import { logitBiasEntriesMax } from "../limits.ts";
import { noAdjustments } from "./adjust.ts";
import { type AdjustFields, resolveAdjustments } from "./adjust-fields.ts";

const defaults = { ...noAdjustments, repetitionPenalty: 1.1, logitBias: new Map([[3, -1]]) };

test("null and absent fields take the defaults", () => {
  const nulls = {
    repetition_penalty: null,
    presence_penalty: null,
    frequency_penalty: null,
    logit_bias: null,
  };
  expect(resolveAdjustments(nulls, defaults)).toEqual(defaults);
  expect(resolveAdjustments({}, defaults)).toEqual(defaults);
});

test("given fields win, those that switch off included", () => {
  const off = { repetition_penalty: 1, presence_penalty: 0, frequency_penalty: 0, logit_bias: {} };
  expect(resolveAdjustments(off, defaults)).toEqual(noAdjustments);
  const edges = {
    repetition_penalty: 1e-3,
    presence_penalty: -2,
    frequency_penalty: 2,
    logit_bias: { 0: -100, 42: 100, 248319: 0.5 },
  };
  expect(resolveAdjustments(edges, defaults)).toEqual({
    repetitionPenalty: 1e-3,
    presencePenalty: -2,
    frequencyPenalty: 2,
    logitBias: new Map([
      [0, -100],
      [42, 100],
      [248319, 0.5],
    ]),
  });
});

const biases = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, id) => [id, 1]));

test("as many biases as the limit says are read", () => {
  const { logitBias } = resolveAdjustments({ logit_bias: biases(logitBiasEntriesMax) }, defaults);
  expect(logitBias.size).toBe(logitBiasEntriesMax);
});

const bad: [keyof AdjustFields, unknown[]][] = [
  ["repetition_penalty", [0, -1, Number.NaN, Number.POSITIVE_INFINITY, true, "1.1", {}]],
  ["presence_penalty", [2.01, -2.01, Number.NaN, false, "0"]],
  ["frequency_penalty", [2.01, -2.01, Number.NaN, false, []]],
  ["logit_bias", [[], [[5, 1]], "5", 5, true, biases(logitBiasEntriesMax + 1)]],
  ["logit_bias", ["abc", "-1", "1.5", "1e3", "05", "+5", " 5", ""].map((key) => ({ [key]: 1 }))],
  ["logit_bias", [JSON.parse('{"__proto__": 1}'), { constructor: 1 }]],
  [
    "logit_bias",
    [100.5, -1e9, Number.NaN, Number.POSITIVE_INFINITY, "1", null, true].map((bias) => ({
      5: bias,
    })),
  ],
];

test.each(bad.flatMap(([name, values]) => values.map((value) => [name, value] as const)))(
  "%s: %j is refused by name",
  (name, value) => {
    const attempt = () => resolveAdjustments({ [name]: value }, defaults);
    expect(attempt).toThrow(InputError);
    expect(attempt).toThrow(expect.objectContaining({ status: 400, param: name }));
  },
);

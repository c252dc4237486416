import { expect, test } from "vitest";
import { effortKwargs, effortLevelsIn } from "./reasoning-effort.ts";

test("a template's levels are those that it names, if it reads the variable", () => {
  const source = `{% if reasoning_effort == 'low' or reasoning_effort == "xhigh" %}`;
  expect(effortLevelsIn(source)).toEqual(["low", "xhigh"]);
  expect(effortLevelsIn("{{ 'low' }}")).toEqual([]);
  expect(effortLevelsIn("{{ reasoning_effort }}")).toEqual([]);
  // Half a word, or none in quotes, is no level.
  expect(effortLevelsIn("reasoning_effort low 'lowest'")).toEqual([]);
});

test("the nearest level is taken, the higher of two that are as near", () => {
  const nearest = (asked: Parameters<typeof effortKwargs>[0]) =>
    effortKwargs(asked, ["low", "medium", "xhigh"])["reasoning_effort"];
  const asked = ["minimal", "low", "medium", "high", "xhigh", "max"] as const;
  expect(asked.map(nearest)).toEqual(["low", "low", "medium", "xhigh", "xhigh", "xhigh"]);
});

test("none switches thinking off, anything else on, and nothing leaves it alone", () => {
  expect(effortKwargs(null, ["low"])).toEqual({});
  expect(effortKwargs("none", ["low"])).toEqual({ enable_thinking: false });
  expect(effortKwargs("high", [])).toEqual({ enable_thinking: true });
});

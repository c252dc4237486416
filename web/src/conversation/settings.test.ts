import { expect, test } from "vitest";
import { faultOfTools, type NumberName, numberRules, readNumber } from "./settings.ts";

const ruleOf = (name: NumberName) => numberRules.find((rule) => rule.name === name)!;

test.each<[NumberName, string, number | null]>([
  ["temperature", "", null],
  ["temperature", " 0.7 ", 0.7],
  ["temperature", "0", 0],
  ["topP", "1", 1],
  ["topK", "40", 40],
  ["seed", "9007199254740991", Number.MAX_SAFE_INTEGER],
])("%s takes %j", (name, typed, value) => {
  expect(readNumber(ruleOf(name), typed)).toBe(value);
});

test.each<[NumberName, string]>([
  ["temperature", "-1"],
  ["temperature", "warm"],
  ["temperature", "NaN"],
  ["temperature", "Infinity"],
  ["temperature", "0,7"],
  ["topP", "0"],
  ["topP", "1.1"],
  ["topK", "1.5"],
  ["minP", "2"],
  ["maxTokens", "0"],
  ["seed", "9007199254740993"],
])("%s refuses %j", (name, typed) => {
  const rule = ruleOf(name);
  expect(readNumber(rule, typed)).toMatch(new RegExp(`^${rule.label} must be a .*number from`));
});

test("tools are a list of functions", () => {
  const tool = '{"type": "function", "function": {"name": "f"}}';
  expect(faultOfTools("")).toBeNull();
  expect(faultOfTools(`[${tool}]`)).toBeNull();
  expect(faultOfTools("[")).toBe("Tools must be JSON.");
  expect(faultOfTools(tool)).toBe("Tools must be a list.");
  for (const wrong of ["{}", "null", '{"type": "function"}', tool.replace('"f"', '""')]) {
    expect(faultOfTools(`[${tool}, ${wrong}]`)).toContain("Tool 2 must be");
  }
});

import { describe, expect, it } from "vitest";
import { isRecord, nestsWithin, outgrown, ownValue, shown } from "./json.ts";

describe("nestsWithin", () => {
  it.each([
    ["[]", 1],
    ['[[],{"a":[]}]', 3],
    ['["[[[{", {}]', 2],
    ['["\\"[[", "\\\\", [1]]', 2],
    // Text that ends within a string is no JSON, which is for the parser to say.
    ['["[[[', 1],
  ])("%s opens %i at once", (text, levels) => {
    expect(nestsWithin(text, levels)).toBe(true);
    expect(nestsWithin(text, levels - 1)).toBe(false);
  });
});

it("counts commas and colons outside strings", () => {
  const text = '{"a,:":[1,2],"b\\",":"c"}';
  expect(outgrown(text, 2, 4)).toBe(null);
  expect(outgrown(text, 2, 3)).toBe("separators");
  expect(outgrown(text, 1, 3)).toBe("levels");
});

describe("shown", () => {
  it.each<[unknown, string]>([
    [undefined, "nothing"],
    [null, "null"],
    ["64", '"64"'],
    [JSON.parse("1e999"), "Infinity"],
    [{ a: [1] }, '{"a":[1]}'],
    ["x".repeat(80), `"${"x".repeat(79)}…`],
  ])("%j is %s", (value, text) => {
    expect(shown(value)).toBe(text);
  });
});

it("tells objects from lists and null, and own keys from a prototype's", () => {
  expect([{}, [], null, "x", undefined].map(isRecord)).toEqual([true, false, false, false, false]);
  expect(ownValue({ a: 1 }, "a")).toBe(1);
  expect(ownValue({}, "constructor")).toBeUndefined();
});

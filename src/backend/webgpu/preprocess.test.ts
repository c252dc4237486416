import { expect, test } from "vitest";
import { kernelSources } from "./kernels.gen.ts";
import { preprocess } from "./preprocess.ts";

const lines = (source: string, defines: Record<string, number> = {}) =>
  preprocess("main", defines, { main: source, part: "part {N}" }).split("\n");

test("keeps one side of a condition, nested ones too", () => {
  const source = "#if A == 1\none\n#if B > 2\nbig\n#else\nsmall\n#end\n#else\nother\n#end\nafter";
  expect(lines(source, { A: 1, B: 3 })).toEqual(["one", "big", "after"]);
  expect(lines(source, { A: 1, B: 2 })).toEqual(["one", "small", "after"]);
  expect(lines(source, { A: 0, B: 3 })).toEqual(["other", "after"]);
});

test("repeats with a counter, in products and in conditions", () => {
  const source = "#repeat i N\n#repeat j 2\na{i}_{j}\n#end\n#if i == 1\nlast\n#end\n#end";
  expect(lines(source, { N: 2 })).toEqual(["a0_0", "a0_1", "a1_0", "a1_1", "last"]);
  expect(lines("#repeat i N * 2\nx\n#end", { N: 2 })).toHaveLength(4);
});

test("includes files and fills in defines, and leaves other braces alone", () => {
  expect(lines("#include part\nif (x) { y }", { N: 7 })).toEqual(["part 7", "if (x) { y }"]);
});

test("adds and multiplies in place", () => {
  expect(lines("a{N+1} b{N*M} c{N*3}\n#repeat i 2\nd{i+1}\n#end", { N: 4, M: 5 })).toEqual([
    "a5 b20 c12",
    "d1",
    "d2",
  ]);
  expect(lines("a{N/M} b{N%M} c{N/2}", { N: 14, M: 4 })).toEqual(["a3 b2 c7"]);
  expect(() => lines("a{N/X}", { N: 1 })).toThrow(/X in \{N\/X\} is not defined/);
});

test("refuses what it doesn't know", () => {
  expect(() => lines("#if A\n#end")).toThrow(/A is not defined/);
  expect(() => lines("#if 1\nx")).toThrow(/line 1 has no #end/);
  expect(() => lines("#else")).toThrow(/stray #else/);
  expect(() => lines("#include other")).toThrow(/no kernel file other/);
  expect(() => lines("#if 1 ? 2\n#end")).toThrow(/unknown operator/);
});

test("every kernel has its contract in its first lines", () => {
  for (const [name, source] of Object.entries(kernelSources)) {
    expect(source.startsWith("// "), name).toBe(true);
  }
});

test("fills in directives too", () => {
  const source = "#repeat n 2\n#repeat j LIVE{n}\n{n}{j}\n#end\n#end";
  expect(lines(source, { LIVE0: 2, LIVE1: 1 })).toEqual(["00", "01", "10"]);
});

import { expect, test } from "vitest";
import { readSamples } from "./exposition.ts";

test("reads samples, and adds up those of one metric", () => {
  const text = [
    "# HELP deltafold_a Some help with 1 number.",
    "# TYPE deltafold_a counter",
    "deltafold_a 1",
    'deltafold_b{pool="x y",quoted="\\"}\\n"} 2',
    'deltafold_b{pool="z"} 3.5 1395066363000',
    "vllm:c 1e3\r",
    "  ",
    "d +Inf",
    "e -Inf",
    "f NaN",
    "g",
    "{} 4",
    "h hello",
    "i{",
  ].join("\n");
  expect([...readSamples(text)]).toEqual([
    ["deltafold_a", 1],
    ["deltafold_b", 5.5],
    ["vllm:c", 1000],
    ["d", Number.POSITIVE_INFINITY],
    ["e", Number.NEGATIVE_INFINITY],
  ]);
});

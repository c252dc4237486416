import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { readCosts, writeCosts } from "./cost-file.ts";
import { areCosts, costTable, type MeasuredCosts } from "./cost-table.ts";

const costs: MeasuredCosts = {
  verify: [
    [1, 10],
    [2, 11],
    [4, 12],
    [8, 20],
    [16, 24],
  ],
  draftMs: 5,
  keepMs: 0.5,
};
const identity = { device: "h200", build: "abc", model: "nano" };

test("joins measured widths by straight lines", () => {
  const table = costTable(costs);
  const expected = [10, 11, 11.5, 12, 14, 16, 18, 20, 20.5, 21, 21.5, 22, 22.5, 23, 23.5, 24];
  expect(expected.map((_, at) => table.verifyMs(at + 1))).toEqual(expected);
  expect([table.draftMs, table.keepMs]).toEqual([5, 0.5]);
  expect(() => table.verifyMs(0)).toThrow(/0 rows/);
  expect(() => table.verifyMs(17)).toThrow(/17 rows/);
});

test.each<[string, Partial<MeasuredCosts>]>([
  ["no width", { verify: [] }],
  ["no plain pass", { verify: costs.verify.slice(1) }],
  ["no full window", { verify: costs.verify.slice(0, -1) }],
  ["a width twice", { verify: [[1, 10], ...costs.verify] }],
  [
    "half a row",
    {
      verify: [
        [1, 1],
        [1.5, 1],
        [16, 2],
      ],
    },
  ],
  [
    "no time at all",
    {
      verify: [
        [1, 0],
        [16, 2],
      ],
    },
  ],
  [
    "endless time",
    {
      verify: [
        [1, 1],
        [16, Number.POSITIVE_INFINITY],
      ],
    },
  ],
  ["a free draft pass", { draftMs: 0 }],
  ["a keep that gives time back", { keepMs: -1 }],
])("makes no table of %s", (_, changes) => {
  expect(areCosts({ ...costs, ...changes })).toBe(false);
  expect(() => costTable({ ...costs, ...changes })).toThrow(/no table/);
});

describe("the file", () => {
  it.each([costs, { ...costs, draftMs: null, keepMs: 0 }])("brings costs back", (written) => {
    expect(readCosts(writeCosts(written, identity), identity)).toEqual(written);
  });

  it.each(["device", "build", "model"] as const)("of another %s is none", (field) => {
    const text = writeCosts(costs, identity);
    expect(readCosts(text, { ...identity, [field]: "other" })).toBeNull();
  });

  it.each([
    ["another version", { version: 2 }],
    ["no times", { verify: null }],
    [
      "a time as text",
      {
        verify: [
          [1, "10"],
          [16, 20],
        ],
      },
    ],
    [
      "three numbers a width",
      {
        verify: [
          [1, 10, 3],
          [16, 20, 3],
        ],
      },
    ],
    [
      "a useless time",
      {
        verify: [
          [1, -10],
          [16, 20],
        ],
      },
    ],
    ["keepMs as text", { keepMs: "1" }],
    ["draftMs missing", { draftMs: undefined }],
  ])("with %s is none", (_, changes) => {
    const fields = JSON.parse(writeCosts(costs, identity)) as object;
    expect(readCosts(JSON.stringify(fields), identity)).not.toBeNull();
    expect(readCosts(JSON.stringify({ ...fields, ...changes }), identity)).toBeNull();
  });

  it("that is cut off, or any other text, is none", () => {
    const text = writeCosts(costs, identity);
    for (let length = 0; length < text.length - 1; length++) {
      expect(readCosts(text.slice(0, length), identity)).toBeNull();
    }
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (other) => {
        expect(readCosts(other, identity)).toBeNull();
      }),
    );
    expect(readCosts("[".repeat(100_000), identity)).toBeNull();
  });
});

import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { readCosts, writeCosts } from "./cost-file.ts";
import { areCosts, costTable, type MeasuredCosts, sharedTable } from "./cost-table.ts";

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
  shared: { streams: 8, plainMs: 24, rowMs: 0.5, draftMs: 12, keepMs: 1 },
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

test("a shared round costs each stream its part, and the rows that it adds", () => {
  const table = sharedTable(costs, 8);
  expect([1, 2, 16].map((rows) => table.verifyMs(rows))).toEqual([3, 3.5, 10.5]);
  expect([table.draftMs, table.keepMs]).toEqual([1.5, 0.125]);
  expect(sharedTable(costs, 1).verifyMs(16)).toBe(24);
  expect(sharedTable({ ...costs, shared: null }, 8).verifyMs(16)).toBe(24);
  // Half of the way from one stream to as many as were measured.
  const half = { ...costs, shared: { ...costs.shared!, streams: 3 } };
  const two = sharedTable(half, 2);
  expect(two.verifyMs(1)).toBe((10 + 24) / 2 / 2);
  expect(two.draftMs).toBe((5 + 12) / 2 / 2);
});

test.each<[string, Partial<MeasuredCosts>]>([
  ["a crowd of one", { shared: { ...costs.shared!, streams: 1 } }],
  ["free rows of a crowd", { shared: { ...costs.shared!, rowMs: 0 } }],
  ["a crowd that drafts where one stream doesn't", { draftMs: null }],
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
  it.each([costs, { ...costs, draftMs: null, keepMs: 0, shared: null }])(
    "brings costs back",
    (written) => {
      expect(readCosts(writeCosts(written, identity), identity)).toEqual(written);
    },
  );

  it.each(["device", "build", "model"] as const)("of another %s is none", (field) => {
    const text = writeCosts(costs, identity);
    expect(readCosts(text, { ...identity, [field]: "other" })).toBeNull();
  });

  it.each([
    ["another version", { version: 1 }],
    ["a crowd as a number", { shared: 8 }],
    ["a crowd without a time", { shared: { ...costs.shared, plainMs: undefined } }],
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

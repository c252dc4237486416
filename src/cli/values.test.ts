import { describe, expect, it } from "vitest";
import {
  gibValue,
  idsValue,
  oneOf,
  samplingValue,
  seedValue,
  shareValue,
  stopValue,
  wholeNumber,
} from "./values.ts";

describe("wholeNumber", () => {
  const parse = wholeNumber(1, 256);
  it.each([
    ["1", 1],
    ["+7", 7],
    ["256", 256],
  ])("reads %s", (text, value) => {
    expect(parse(text)).toBe(value);
  });

  it.each(["", " ", "0", "257", "-1", "1.5", "1e2", "0x10", "7x", "NaN", "Infinity", "９"])(
    "refuses %j",
    (text) => {
      expect(() => parse(text)).toThrow("It must be a whole number from 1 to 256.");
    },
  );

  it("refuses numbers that would be rounded", () => {
    const open = wholeNumber(1, Number.MAX_SAFE_INTEGER);
    expect(() => open("9007199254740993")).toThrow("It must be a whole number of at least 1.");
  });
});

describe("oneOf", () => {
  const parse = oneOf([32, 64, 128]);
  it("reads what it allows", () => {
    expect(parse("64")).toBe(64);
  });

  it.each(["48", "0", "", "64x", "6.4e1", "3264"])("refuses %j", (text) => {
    expect(() => parse(text)).toThrow("It must be 32, 64 or 128.");
  });
});

describe("samplingValue", () => {
  it.each([
    ["temperature", "0", 0],
    ["temperature", ".5", 0.5],
    ["temperature", "1e-3", 0.001],
    ["top_p", "1.", 1],
    ["top_k", "-1", -1],
    ["min_p", "0.05", 0.05],
  ] as const)("reads %s %s", (field, text, value) => {
    expect(samplingValue(field)(text)).toBe(value);
  });

  it.each(["", "1e9x", "NaN", "Infinity", "1e999", "0x1", "1,5", "--1", "."])(
    "refuses %j",
    (text) => {
      expect(() => samplingValue("temperature")(text)).toThrow("It must be a finite number.");
    },
  );

  it.each([
    ["temperature", "-0.1", "temperature must be at least 0, not -0.1."],
    ["top_p", "0", "top_p must be over 0 and at most 1, not 0."],
    ["top_k", "1.5", "top_k must be a whole number, not 1.5."],
    ["min_p", "2", "min_p must be between 0 and 1, not 2."],
  ] as const)("refuses %s %s as requests do", (field, text, message) => {
    expect(() => samplingValue(field)(text)).toThrow(message);
  });
});

describe("gibValue", () => {
  it("is a number of bytes", () => {
    expect(gibValue("0")).toBe(0);
    expect(gibValue("4")).toBe(4 * 2 ** 30);
    expect(gibValue(".5")).toBe(2 ** 29);
    expect(gibValue("1e-9")).toBe(1);
  });

  it.each(["", "-1", "1 GiB", "Infinity", "1e400", "0x1"])("refuses %j", (text) => {
    expect(() => gibValue(text)).toThrow("It must be a number of at least 0.");
  });
});

describe("shareValue", () => {
  it("leaves something of the whole", () => {
    expect(shareValue("0")).toBe(0);
    expect(shareValue("0.75")).toBe(0.75);
  });

  it.each(["", "1", "-0.1", "25%", "NaN"])("refuses %j", (text) => {
    expect(() => shareValue(text)).toThrow("It must be a number from 0 to below 1.");
  });
});

describe("seedValue", () => {
  it("reads all 64 bits", () => {
    expect(seedValue("18446744073709551615")).toBe(2n ** 64n - 1n);
    expect(seedValue("-9223372036854775808")).toBe(-(2n ** 63n));
    expect(seedValue("+3")).toBe(3n);
  });

  it.each(["", "1.0", "1e3", "18446744073709551616", "-9223372036854775809", "0x1"])(
    "refuses %j",
    (text) => {
      expect(() => seedValue(text)).toThrow("It must be a whole number from -2^63 to 2^64 - 1.");
    },
  );
});

describe("stopValue", () => {
  it("gathers strings", () => {
    expect(stopValue("b", ["a"])).toEqual(["a", "b"]);
  });

  it("refuses what requests may not have either", () => {
    expect(() => stopValue("", [])).toThrow(/stop/i);
    const many = Array.from({ length: 16 }, (_, i) => `stop ${i}`);
    expect(() => stopValue("one more", many)).toThrow("At most 16 stop strings are allowed.");
  });
});

describe("idsValue", () => {
  it("reads a JSON list", () => {
    expect(idsValue(" [1, 2,0]")).toEqual([1, 2, 0]);
  });

  it.each([
    ["", "a JSON list of token ids, such as [1,2]."],
    ["[1,2", "a JSON list of token ids"],
    ["1,2", "a JSON list of token ids"],
    ['{"a":1}', "a JSON list of token ids"],
    ["[]", "this one is empty"],
    ["[1,-2]", "-2 is no token id"],
    ["[1.5]", "1.5 is no token id"],
    ['["1"]', '"1" is no token id'],
    ["[null]", "null is no token id"],
    ["[9007199254740993]", "is no token id"],
  ])("refuses %j", (text, message) => {
    expect(() => idsValue(text)).toThrow(message);
  });
});

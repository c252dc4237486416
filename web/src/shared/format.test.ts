import { expect, test } from "vitest";
import { bytesText, countText, durationText, figureText, percentText } from "./format.ts";

test("what isn't there is a dash, never 0", () => {
  for (const write of [bytesText, countText, durationText, figureText, percentText]) {
    for (const value of [null, undefined, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(write(value)).toBe("–");
    }
    expect(write(0)).toMatch(/^0( |$)/);
  }
});

test("writes figures with what matters of them", () => {
  expect([1, 1234.6, 1e9].map(countText)).toEqual(["1", "1,235", "1,000,000,000"]);
  expect([0.123, 9.994, 9.996, 99.94, 99.96, 12345].map(figureText)).toEqual([
    ...["0.12", "9.99", "10.0", "99.9", "100", "12,345"],
  ]);
  expect([0.004, 0.0999, 0.1, 0.456, 1].map(percentText)).toEqual([
    ...["0.4 %", "10.0 %", "10 %", "46 %", "100 %"],
  ]);
  expect([1, 1023, 1024, 1.5 * 2 ** 20, 2 ** 30, 2 ** 50].map(bytesText)).toEqual([
    ...["1 B", "1023 B", "1.00 KiB", "1.50 MiB", "1.00 GiB", "1,024 TiB"],
  ]);
  expect([0.4, 999.4, 1000, 61_000].map(durationText)).toEqual([
    ...["0 ms", "999 ms", "1.00 s", "61.0 s"],
  ]);
});

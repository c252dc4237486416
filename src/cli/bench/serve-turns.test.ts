import { expect, test } from "vitest";
import { isSteady, type Measured, pairedOf, speedOf, takeTurns } from "./serve-turns.ts";

const measured = (tokensPerSecond: number, sha = "a"): Measured => {
  return { tokensPerSecond, firstTokenMs: 1, tokens: 2, rounds: 1, tokenShas: [sha] };
};

/** Cases that note where they were measured, the speed being how many were before. */
function noted(names: readonly string[]) {
  const log: string[] = [];
  const cases = names.map((name) => ({
    name,
    measure: async (url: string) => {
      log.push(`${name}${url}`);
      return measured(log.length);
    },
  }));
  return { log, cases };
}

test("cases take turns, backwards every second time, and the first doesn't count", async () => {
  const { log, cases } = noted(["a", "b"]);
  const repeats: number[] = [];
  const urls = { own: "1", other: null };
  const taken = await takeTurns(cases, urls, 2, (repeat) => repeats.push(repeat));
  expect(log).toEqual(["a1", "b1", "b1", "a1", "a1", "b1"]);
  expect(repeats).toEqual([0, 1, 2]);
  const [first, second] = cases.map((each) => taken.get(each)!);
  expect(first!.own.map(({ tokensPerSecond }) => tokensPerSecond)).toEqual([4, 5]);
  expect(second!.own.map(({ tokensPerSecond }) => tokensPerSecond)).toEqual([3, 6]);
  expect(pairedOf(first!)).toBeNull();
});

test("two builds take turns within each case", async () => {
  const { log, cases } = noted(["a", "b"]);
  const taken = await takeTurns(cases, { own: "1", other: "2" }, 1, () => {});
  expect(log.slice(8).join(" ")).toBe("b2 b1 b1 b2 a2 a1 a1 a2");
  const { own, other } = taken.get(cases[0]!)!;
  expect(own.map(({ tokensPerSecond }) => tokensPerSecond)).toEqual([14, 15]);
  expect(other.map(({ tokensPerSecond }) => tokensPerSecond)).toEqual([13, 16]);
});

test("builds are compared by four turns, and the other one with itself", () => {
  const own = [110, 120, 90, 90, 100, 110].map((speed) => measured(speed));
  const other = [100, 100, 80, 100, 100, 110].map((speed) => measured(speed));
  expect(pairedOf({ own, other })).toEqual({
    tokens_per_second: { median: 100, min: 80, max: 110 },
    percent: { median: 100, min: 100, max: 115 },
    self_percent: { median: 110, min: 100, max: 125 },
    equal: true,
  });
  expect(speedOf(own)).toEqual({ median: 105, min: 90, max: 120 });
});

test("a token that is another is noticed, whichever build it is of", () => {
  const same = [measured(1), measured(1)];
  const wrong = [measured(1), measured(1, "b")];
  expect(pairedOf({ own: same, other: same })!.equal).toBe(true);
  expect(pairedOf({ own: same, other: wrong })!.equal).toBe(false);
  expect(pairedOf({ own: wrong, other: same })!.equal).toBe(false);
  expect(isSteady(same, ["a"])).toBe(true);
  expect(isSteady(same, ["a", "a"])).toBe(false);
  expect(isSteady(wrong, ["a"])).toBe(false);
});

import { expect, test } from "vitest";
import { Acceptance, blockPrior, copyPrior } from "./acceptance.ts";

const product = (chances: readonly number[]) => {
  let path = 1;
  return chances.reduce((sum, chance) => {
    path *= chance;
    return sum + path;
  }, 1);
};

test("expects the prior's tokens before anything was tried", () => {
  const block = new Acceptance(blockPrior);
  const chances = [0.85, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.5, 0.5];
  for (let drafts = 0; drafts <= 9; drafts++) {
    expect(block.expectedTokens(drafts)).toBeCloseTo(product(chances.slice(0, drafts)), 12);
  }
  expect(new Acceptance(copyPrior).expectedTokens(2)).toBeCloseTo(1 + 0.94 + 0.94 ** 2, 12);
});

test("a round counts for the drafts up to the first miss", () => {
  const block = new Acceptance(blockPrior);
  block.observe(5, 1);
  // Two rounds of the prior fade to 1.8, and one is added.
  const first = (0.85 * 1.8 + 1) / 2.8;
  const second = (0.75 * 1.8) / 2.8;
  expect(block.expectedTokens(1)).toBeCloseTo(1 + first, 12);
  expect(block.expectedTokens(3)).toBeCloseTo(product([first, second, 0.7]), 12);
  block.observe(1, 1);
  const again = ((0.85 * 1.8 + 1) * 0.9 + 1) / (2.8 * 0.9 + 1);
  expect(block.expectedTokens(2)).toBeCloseTo(product([again, second]), 12);
  block.observe(0, 0);
  expect(block.expectedTokens(2)).toBeCloseTo(product([again, second]), 12);
});

test("forgets: what landed long ago counts for nothing", () => {
  const block = new Acceptance(blockPrior);
  for (let round = 0; round < 100; round++) block.observe(7, 7);
  expect(block.expectedTokens(7)).toBeGreaterThan(7.99);
  for (let round = 0; round < 100; round++) block.observe(7, 0);
  expect(block.expectedTokens(7)).toBeLessThan(1.01);
});

test("refuses more than a window's drafts, and more right than were tried", () => {
  const block = new Acceptance(blockPrior);
  expect(() => block.expectedTokens(16)).toThrow(/16 drafts/);
  expect(() => block.observe(16, 0)).toThrow(/16 drafts/);
  expect(() => block.observe(2, 3)).toThrow(/3 of 2/);
});

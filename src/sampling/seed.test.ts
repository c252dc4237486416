import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { promptSeed, tokenSha } from "./seed.ts";

test("a prompt's seed: 63 bits of SHA-256 over `ids|salt`", () => {
  expect(promptSeed([1, 2, 3])).toBe(2418267834652783048n);
  expect(promptSeed([], 7)).toBe(7351706603791898857n);
  expect(promptSeed([1, 2, 3], 1)).not.toBe(promptSeed([1, 2, 3]));
  expect(promptSeed([12, 3])).not.toBe(promptSeed([1, 23]));
});

test("a prompt's seed never uses the top bit", () => {
  for (let id = 0; id < 64; id++) expect(promptSeed([id]) >> 63n).toBe(0n);
});

test("token_sha", () => {
  expect(tokenSha([])).toBe("e3b0c44298fc");
  expect(tokenSha([1, 2, 3])).toBe("8a6ae1512200");
  const long = Array.from({ length: 5000 }, (_, i) => i * 31);
  const whole = createHash("sha256").update(long.join(",")).digest("hex");
  expect(tokenSha(long)).toBe(whole.slice(0, 12));
});

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { storedCosts } from "./cost-store.ts";
import { costFiles } from "./cost-store-node.ts";
import type { MeasuredCosts } from "./cost-table.ts";

const costs: MeasuredCosts = {
  verify: [
    [1, 10],
    [16, 24],
  ],
  draftMs: null,
  keepMs: 0.5,
  shared: null,
};
const of = { device: "h200", model: "nano" };
const never = () => Promise.reject(new Error("measured again"));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "deltafold-costs-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

test("what was measured once is kept, and nothing lies beside it", async () => {
  const inside = join(folder, "made", "for", "it");
  expect(await storedCosts(costFiles("1.0.0", inside), of, async () => costs)).toEqual(costs);
  expect(await storedCosts(costFiles("1.0.0", inside), of, never)).toEqual(costs);
  expect(readdirSync(inside)).toEqual([expect.stringMatching(/^[0-9a-f]{16}\.json$/)]);
});

test("another version, device or model is measured anew", async () => {
  const store = costFiles("1.0.0", folder);
  await storedCosts(store, of, async () => costs);
  const others = [
    storedCosts(costFiles("1.0.1", folder), of, never),
    storedCosts(store, { ...of, device: "a100" }, never),
    storedCosts(store, { ...of, model: "other" }, never),
  ];
  for (const other of others) await expect(other).rejects.toThrow("measured again");
});

test("what could not be measured is kept no more than what can't be written", async () => {
  const store = costFiles("1.0.0", folder);
  expect(await storedCosts(store, of, async () => null)).toBeNull();
  expect(readdirSync(folder)).toEqual([]);
  const file = join(folder, "file");
  writeFileSync(file, "");
  expect(await storedCosts(costFiles("1.0.0", file), of, async () => costs)).toEqual(costs);
});

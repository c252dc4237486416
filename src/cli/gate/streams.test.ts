import { expect, test } from "vitest";
import { embeddedModel, openBackend } from "../../node.ts";
import { failedOf, fake, hashes } from "./drafted.cases.ts";
import { nanoDrafter } from "./drafter.cases.ts";
import type { Opener } from "./faulty.cases.ts";
import { noDrafter } from "./gate-drafters.ts";
import { runCells } from "./gate-run.cases.ts";
import { runStreams, tinyStreams } from "./streams.cases.ts";
import { streamsGate } from "./streams.ts";
import { coverageCellsMin } from "./streams-coverage.ts";
import { longCells, streamsGrid } from "./streams-grid.ts";
import { streamsSettings } from "./streams-settings.ts";

const wasm: Opener = (options) => openBackend(options, { backend: "wasm", threads: 2 });
const replyTokens = 12;

test.each([
  ["replies of two tokens, nearly", fake],
  ["replies in which nothing repeats", hashes],
])("passes on a backend that keeps its word: %s", async (_, open) => {
  const report = await runStreams(open, tinyStreams, coverageCellsMin);
  expect(failedOf(report)).toEqual([]);
  const { counts } = report.cases.find(({ name }) => name === "coverage")!;
  for (const [event, count] of Object.entries(counts!)) expect(count, event).toBeGreaterThan(0);
});

test("passes on a model of numbers", async () => {
  const report = await runStreams(wasm, { ...tinyStreams, tokensMax: 6 }, 28);
  expect(failedOf(report)).toEqual([]);
  expect(report.passed).toBe(28);
});

test("a sample that ends early tells of every other cell", async () => {
  const report = await runStreams(fake, tinyStreams, 5);
  const all = streamsGrid(replyTokens).length + longCells().length;
  expect(report.not_run).toEqual([
    `${all - 5} of ${all} cells, from #6 on: out of the sample's time; --full runs it`,
    `coverage: 5 cells ran, of the ${coverageCellsMin} that it takes`,
  ]);
});

test("without a drafter none of the model's drafts are tried, and that is said", async () => {
  const report = await runStreams(fake, { ...tinyStreams, drafter: null }, 12);
  expect(failedOf(report)).toEqual([]);
  expect(report.not_run[0]).toBe("drafts by chain, tree, auto: there is no drafter for this model");
  expect(report.cases.some(({ counts }) => counts!["accepted"]! > 0)).toBe(true);
});

test("streams that never draft prove little", async () => {
  const plain = { ...tinyStreams, drafters: [noDrafter] };
  expect(failedOf(await runStreams(fake, plain, coverageCellsMin))).toEqual([
    "coverage: no rounds of drafted and plain streams; no rounds with windows of several streams",
  ]);
});

test("the first cells of nano and its drafter pass on wasm", { timeout: 600_000 }, async () => {
  const options = { model: embeddedModel, drafter: nanoDrafter, full: false, references: null };
  const report = await runCells("streams", 7, (run) =>
    streamsGate(run, { ...options, open: wasm }),
  );
  expect(failedOf(report)).toEqual([]);
  expect(report.passed).toBe(7);
});

test("the grid has every kind of cell as often, and each token at which another may come", () => {
  const grid = streamsGrid(replyTokens);
  expect(grid.length).toBe(5 * 3 * 7 * 4 * 3);
  expect(new Set(grid.map(({ name }) => name)).size).toBe(grid.length);
  for (const streams of [2, 4, 8]) {
    const joins = new Set(
      grid.filter((cell) => cell.streams === streams).map(({ join }) => join.name),
    );
    for (let token = 1; token <= replyTokens; token++) {
      expect(joins).toContain(`at another's token ${token}`);
    }
    for (let chunk = 1; chunk <= 3; chunk++) expect(joins).toContain(`amid chunk ${chunk}`);
  }
  const kinds = Map.groupBy(grid, ({ streams, setting, join, leave }) => {
    return [streams, setting.name, join.name.replace(/\d+/, ""), leave.name].join();
  });
  expect([...kinds.values()].every(({ length }) => length === 5)).toBe(true);
  expect(new Set(grid.slice(0, 7).map(({ setting }) => setting))).toEqual(new Set(streamsSettings));
});

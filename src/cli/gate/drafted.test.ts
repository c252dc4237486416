import { expect, test } from "vitest";
import { openFolder } from "../../checkpoint/source-node.ts";
import type { Drafting } from "../../draft/drafting.ts";
import { promptChunkRows } from "../../limits.ts";
import { embeddedModel, modelFolder, openBackend } from "../../node.ts";
import { openTemplate, openTokenizer } from "../../open-text.ts";
import { failedOf, fake, hashes, reference, runDrafted, tinySet } from "./drafted.cases.ts";
import { draftedGate, draftedOn } from "./drafted.ts";
import { gridTasks } from "./drafted-grid.ts";
import { nanoDrafter } from "./drafter.cases.ts";
import { type GateDrafter, gateDrafters } from "./gate-drafters.ts";
import { gatePrompts } from "./gate-prompts.ts";
import { runCells } from "./gate-run.cases.ts";
import type { GateReport } from "./gate-run.ts";
import { gateSamplings } from "./gate-samplings.ts";
import type { ReplySet } from "./gate-set.ts";
import type { GateOptions } from "./options.ts";

/** Cells of a set's grid, for each drafter. */
const tasksOf = ({ prompts, samplings }: ReplySet) => prompts.length * samplings.length;
const wholeSet = { ...tinySet, samplings: gateSamplings, tokensMax: 48 };

test("passes on a backend that keeps its word", async () => {
  const report = await runDrafted(fake, wholeSet);
  expect(failedOf(report)).toEqual([]);
  // Beside the grid: two cells of two streams, and the coverage.
  const passed = 8 * tasksOf(wholeSet) + 3;
  expect(report).toMatchObject({ ok: true, passed, not_run: [] });
  for (const { name, counts } of report.cases.filter((cell) => cell.name.endsWith(": right"))) {
    const { tokens, rounds } = counts!;
    expect(rounds, name).toBe(Math.ceil((tokens! - 1) / 16));
  }
  const { counts } = report.cases.find(({ name }) => name === "coverage")!;
  expect(Object.values(counts!).every((count) => count > 0)).toBe(true);
});

test("passes on a model of numbers", async () => {
  const report = await runDrafted(reference, tinySet);
  expect(failedOf(report)).toEqual([]);
  expect(report).toMatchObject({ passed: 8 * tasksOf(tinySet) + 3, not_run: [] });
});

test("without a drafter its cells are not run, and said to be so", async () => {
  const report = await runDrafted(fake, { ...tinySet, drafter: null });
  expect(failedOf(report)).toEqual([]);
  expect(report.not_run).toEqual([
    "phrases, greedy, narrow: tree beside random, t1 k0: random length: there is no drafter for this model",
    "phrases, random: 6 of 16 cells: (all) × (auto, chain, tree): there is no drafter for this model",
    "coverage: 22 cells ran, of the 32 that it takes",
  ]);
});

/** What a drafter did in its rounds: the widths of its windows, and how its blocks were cut. */
function recorded(drafter: GateDrafter) {
  const widths = new Set<number>();
  const rounds = { blocks: 0, cut: 0, refused: 0, idle: 0 };
  const record = (drafting: Drafting): Drafting => ({
    push: (id) => drafting.push(id),
    wish: (...args) => drafting.wish(...args),
    choose: (lattice, ...args) => {
      const proposal = drafting.choose(lattice, ...args);
      const drafts = proposal?.ids.length ?? 0;
      rounds.blocks++;
      if (drafts === 0) rounds.refused++;
      else if (drafts < lattice.rows.length) rounds.cut++;
      return proposal;
    },
    landed: (proposal, ...args) => {
      widths.add(1 + proposal.ids.length);
      drafting.landed(proposal, ...args);
    },
    idle: (ms) => {
      rounds.idle++;
      drafting.idle(ms);
    },
  });
  const drafting: GateDrafter["drafting"] = (of) => record(drafter.drafting(of)!);
  return { drafter: { ...drafter, drafting }, widths, rounds };
}

test("the engine's own drafting meets costs by which it drafts more, less and not at all", async () => {
  const auto = recorded(gateDrafters.find(({ name }) => name === "auto")!);
  const report = await runDrafted(fake, { ...wholeSet, drafters: [auto.drafter] });
  expect(failedOf(report)).toEqual([]);
  expect(auto.widths.size).toBeGreaterThan(8);
  const { blocks, cut, refused, idle } = auto.rounds;
  expect(Math.min(cut, refused, blocks - cut - refused)).toBeGreaterThan(2);
  // Pauses too, and not only blocks that were not worth their rows.
  expect(idle).toBeGreaterThan(2 * refused);
});

/** Every cell of which a report tells, by "prompts: n of m cells" and "prompts: all n cells". */
function cellsNotRun({ not_run: lines }: GateReport): number {
  const counts = lines.map((line) => {
    const found = /^(.*?): (?:all )?(\d+) (?:of \d+ )?cells[ :](?!ran)/.exec(line);
    return found ? found[1]!.split(", ").length * Number(found[2]) : 0;
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

test.each([1, 9, 20, 50, 127])(
  "a sample that ends after %i cells tells of every other",
  async (n) => {
    const report = await runCells("drafted", n, (run) =>
      draftedOn(run, { open: fake, full: false }, wholeSet),
    );
    const inGrid = report.cases.filter(({ name }) => !/ beside |coverage/.test(name));
    expect(cellsNotRun(report)).toBe(8 * tasksOf(wholeSet) - inGrid.length);
  },
);

test("a drafter whose drafts are never accepted proves nothing", async () => {
  const report = await runDrafted(hashes, wholeSet);
  expect(failedOf(report)).toEqual(["coverage: copy: none of 0 drafts accepted"]);
});

test("the first cells of nano and its drafter pass on wasm", { timeout: 600_000 }, async () => {
  const open: GateOptions["open"] = (options) =>
    openBackend(options, { backend: "wasm", threads: 2 });
  const options = {
    open,
    model: embeddedModel,
    drafter: nanoDrafter,
    full: false,
    references: null,
  };
  const report = await runCells("drafted", 20, (run) => draftedGate(run, options));
  expect(failedOf(report)).toEqual([]);
  const drafters = new Set(report.cases.map(({ name }) => name.split(": ").at(-1)));
  expect(drafters.size).toBe(8);
  for (const drafter of ["chain", "tree", "auto"]) {
    const cells = report.cases.filter(({ name }) => name.endsWith(`: ${drafter}`));
    expect(
      cells.some(({ counts }) => counts!["accepted"]! > 0),
      drafter,
    ).toBe(true);
  }
});

test("the grid of nano has every cell once, and first of all some of each kind", async () => {
  const folder = await openFolder(modelFolder(embeddedModel));
  const tokenizer = await openTokenizer(folder, 8192);
  const prompts = gatePrompts(tokenizer, await openTemplate(folder), 8192);
  expect(prompts.length).toBe(9 + 64);
  expect(prompts.every(({ ids }) => ids.length > 0 && ids.length < 400)).toBe(true);
  expect(prompts[0]!.ids.length).toBe(1);
  // Of several chunks.
  expect(prompts[8]!.ids.length).toBeGreaterThan(promptChunkRows);
  const cells = gridTasks(prompts, gateSamplings, gateDrafters).flat();
  expect(cells.length).toBe(73 * 8 * 8);
  expect(new Set(cells.map(({ name }) => name)).size).toBe(cells.length);
  const first = cells.slice(0, 40);
  expect(new Set(first.map(({ drafter }) => drafter)).size).toBe(8);
  expect(new Set(first.map(({ task }) => task.sampling)).size).toBe(8);
  for (const drafter of gateDrafters) {
    const own = cells.slice(0, 64).filter((cell) => cell.drafter === drafter);
    expect(new Set(own.map(({ task }) => task.sampling)).size, drafter.name).toBe(8);
    const narrow = own.flatMap(({ task }) => (task.narrow ? [task.sampling.name] : []));
    expect(narrow.sort(), drafter.name).toEqual(["greedy", "t1 k20 p0.95 m0.05"]);
  }
  // What needs whole rows is never narrow, and of the others a half.
  const narrow = Map.groupBy(cells, ({ task }) => (task.narrow ? task.sampling.name : "wide"));
  expect([...narrow.keys()].sort()).toEqual([
    "greedy",
    "t0.7 k20 p0.95",
    "t1 k20 p0.95 m0.05",
    "wide",
  ]);
  narrow.delete("wide");
  for (const [sampling, { length }] of narrow) {
    expect(Math.abs(length / (73 * 8) - 0.5), sampling).toBeLessThan(0.05);
  }
  for (const prompt of prompts.slice(0, 9)) {
    expect(
      first.some(({ task }) => task.prompt === prompt),
      prompt.name,
    ).toBe(true);
  }
});

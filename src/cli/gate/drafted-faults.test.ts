import { beforeEach, expect, test, vi } from "vitest";
import type { Backend, PassHandle, PassResult } from "../../backend/backend.ts";
import { type Plan, pathOf, type Segment } from "../../model/plan.ts";
import { failedOf, fake, hashes, reference, runDrafted, tinySet } from "./drafted.cases.ts";
import { faulty } from "./faulty.cases.ts";
import { gateDrafters } from "./gate-drafters.ts";
import type { GateReport } from "./gate-run.ts";
import { gateSamplings } from "./gate-samplings.ts";

/** What is wrong below the backend's interface. */
const planted = vi.hoisted(() => ({
  positionOff: false,
  keyedByPass: false,
  lateHistory: false,
  staleFeatures: false,
  lostFeatures: false,
  nothingAccepted: false,
  passes: 0,
}));

type Planted = Exclude<keyof typeof planted, "passes">;

beforeEach(() => {
  Object.assign(planted, {
    positionOff: false,
    keyedByPass: false,
    lateHistory: false,
    staleFeatures: false,
    lostFeatures: false,
    nothingAccepted: false,
  } satisfies Record<Planted, false>);
});

vi.mock(import("../../model/plan.ts"), async (original) => {
  const plan = await original();
  const depthsOf: typeof plan.depthsOf = (segment) => {
    const off = planted.positionOff && "window" in segment && segment.window ? 1 : 0;
    return plan.depthsOf(segment).map((depth) => depth + off);
  };
  return { ...plan, depthsOf };
});

vi.mock(import("../../sampling/sampler.ts"), async (original) => {
  const { Sampler } = await original();
  class RoundSampler extends Sampler {
    #first: { readonly position: number; readonly pass: number } | null = null;

    /** Keys the draw by the pass and not by the position: the same where each pass draws one token. */
    override draw(...[candidates, position]: Parameters<InstanceType<typeof Sampler>["draw"]>) {
      this.#first ??= { position, pass: planted.passes };
      const { position: first, pass } = this.#first;
      return super.draw(candidates, planted.keyedByPass ? first + planted.passes - pass : position);
    }
  }
  return { Sampler: RoundSampler };
});

vi.mock(import("../../backend/reference/delta-steps.ts"), async (original) => {
  const steps = await original();
  const commit: typeof steps.commit = (shape, slot, log, path) => {
    const before = slot.history.map((rows) => rows.slice());
    steps.commit(shape, slot, log, path);
    if (!planted.lateHistory) return;
    // The histories of one row fewer, beside states of all of them.
    const late = { ...slot, state: slot.state.map((values) => values.slice()), history: before };
    if (path.length > 1) steps.commit(shape, late, log, path.slice(0, -1));
    for (const [layer, rows] of slot.history.entries()) rows.set(late.history[layer]!);
  };
  return { ...steps, commit };
});

vi.mock(import("../../backend/reference/memory.ts"), async (original) => {
  const memory = await original();
  const movePath: typeof memory.movePath = (all, segment, path) => {
    const draftKv = planted.staleFeatures ? { ...all.draftKv, layers: [] } : all.draftKv;
    memory.movePath({ ...all, draftKv }, segment, path);
  };
  return { ...memory, movePath };
});

vi.mock(import("../../backend/reference/draft-steps.ts"), async (original) => {
  const steps = await original();
  const draftStep: typeof steps.draftStep = (pass, drafter, step) => {
    const loses = planted.lostFeatures && step.op === "feature";
    const segments = pass.plan.segments.filter(({ window }) => !(loses && window));
    const { shape, tensors, memory } = pass;
    const rows: typeof pass.rows = (name) => pass.rows(name);
    const view = { shape, tensors, memory, rows, plan: { ...pass.plan, segments } };
    steps.draftStep({ ...view, drafter: pass.drafter }, drafter, step);
  };
  return { ...steps, draftStep };
});

vi.mock(import("../../rounds/accept.ts"), async (original) => {
  const accept = await original();
  const acceptWindow: typeof accept.acceptWindow = (stream, proposal, draws, first) =>
    accept.acceptWindow(stream, planted.nothingAccepted ? null : proposal, draws, first);
  return { ...accept, acceptWindow };
});

/** What was verified, for what is done with it later. */
function verifiedBy(backend: Backend) {
  const plans = new Map<PassHandle, Plan>();
  const verify = (plan: Plan): PassHandle => {
    const handle = backend.verify(plan);
    plans.set(handle, plan);
    return handle;
  };
  return { verify, of: (handle: PassHandle) => plans.get(handle) ?? null };
}

const windowsOf = ({ segments }: Plan) => segments.filter(({ window }) => window);

type ChangePath = (path: readonly number[], window: Segment) => readonly number[];

/** Keeps other rows than those that were accepted. */
const keeping =
  (change: ChangePath) =>
  (backend: Backend): Partial<Backend> => {
    const { verify, of } = verifiedBy(backend);
    return {
      verify,
      keep: (handle, paths) => {
        const windows = windowsOf(of(handle)!);
        backend.keep(
          handle,
          paths.map((path, at) => change(path, windows[at]!)),
        );
      },
    };
  };

const parentOf = ({ parents }: Segment, row: number) => (parents ? parents[row]! : row - 1);

/** The first refused row is kept too. */
const oneMore: ChangePath = (path, window) => {
  const last = path.at(-1);
  const next = Array.from({ length: window.rows }, (_, row) => row).find(
    (row) => row > 0 && parentOf(window, row) === last,
  );
  return next === undefined ? path : [...path, next];
};

/** Another path, as long as the right one; of chains there is none. */
const otherPath: ChangePath = (path, window) => {
  const paths = Array.from({ length: window.rows }, (_, row) => pathOf(window, row));
  return (
    paths.find((other) => other.length === path.length && other.join() !== path.join()) ?? path
  );
};

/** Every second extend is forgotten. */
const halfExtended = (backend: Backend): Partial<Backend> => {
  let count = 0;
  return {
    extend: (plan) => {
      if (count++ % 2 === 0) backend.extend(plan);
    },
  };
};

const { vocabSize } = tinySet.weights.shape;

/** The likeliest token of each window's last row is another, unless the whole row is asked for. */
const lastRowOff = (backend: Backend): Partial<Backend> => {
  const { verify, of } = verifiedBy(backend);
  const off = (draw: PassResult["draws"][number]) => {
    if (draw instanceof Error) return draw;
    return { ...draw, ids: draw.ids.map((id, at) => (at === 0 ? (id + 1) % vocabSize : id)) };
  };
  return {
    verify,
    read: async (handle) => {
      const result = await backend.read(handle);
      const plan = of(handle);
      if (!plan) return result;
      const lastRows = windowsOf(plan).map(({ firstRow, rows }) => firstRow + rows - 1);
      const draws = result.draws.map((draw, at) => {
        const { row, candidates } = plan.draws[at]!;
        return candidates > 0 && lastRows.includes(row) ? off(draw) : draw;
      });
      return { ...result, draws };
    },
  };
};

/** Counts the passes that draws may be keyed by. */
const counted = (backend: Backend): Partial<Backend> => ({
  prefill: (plan) => {
    planted.passes++;
    return backend.prefill(plan);
  },
  verify: (plan) => {
    planted.passes++;
    return backend.verify(plan);
  },
});

/** Failed cells but the coverage, which may have its own say. */
const linesOf = (report: GateReport) => failedOf(report).filter((line) => !/^coverage/.test(line));

/** The drafters of failed cells. */
const draftersOf = (lines: readonly string[]) => {
  const cells = lines.filter((line) => !line.includes(" beside "));
  return [...new Set(cells.map((line) => line.split(": ")[1]!))].sort();
};

const logits = /: the logits of token \d+ differ/;
const state = /: the state differs after \d+ tokens/;
const context = /: the drafter's context differs after \d+ tokens/;
const token = /[:;] token \d+ is \d+, not \d+/;
const any = new RegExp(`${logits.source}|${state.source}`);

/** A narrow reply has no logits to tell of: it goes on to the first wrong token, or its end. */
const expectAll = (lines: readonly string[], found: RegExp) => {
  const later = new RegExp(`${token.source}|${state.source}`);
  for (const line of lines) {
    expect(line).toMatch(line.includes(", narrow") && !found.test(line) ? later : found);
  }
};
const drafted = ["auto", "chain", "copy", "random length", "right", "tree", "wrong"];

test("one rollback that is skipped fails one cell", async () => {
  let keeps = 0;
  const once: ChangePath = (path, window) => (++keeps === 30 ? oneMore(path, window) : path);
  const lines = linesOf(await runDrafted(faulty(fake, keeping(once)), tinySet));
  expect(lines).toEqual([expect.stringMatching(any)]);
});

test("rows of a tree's other path that are kept", async () => {
  const lines = linesOf(await runDrafted(faulty(fake, keeping(otherPath)), tinySet));
  expect(draftersOf(lines)).toEqual(["random length", "tree"]);
  expectAll(lines, any);
});

test("positions of windows that are off by one", async () => {
  planted.positionOff = true;
  const lines = linesOf(await runDrafted(fake, tinySet));
  expect(draftersOf(lines)).toEqual(drafted);
  expectAll(lines, logits);
});

test("extends that are forgotten", async () => {
  const lines = linesOf(await runDrafted(faulty(fake, halfExtended), tinySet));
  expect(draftersOf(lines)).toEqual(expect.arrayContaining(["auto", "chain", "tree"]));
  // The fake refuses a block behind such a context; where none is asked for, the fingerprint tells.
  for (const line of lines) expect(line).toMatch(/a draft whose context is wrong|context differs/);
  expect(lines.some((line) => context.test(line))).toBe(true);
});

test("draws that are keyed by the pass", async () => {
  planted.keyedByPass = true;
  const lines = linesOf(await runDrafted(faulty(hashes, counted), tinySet));
  expect(draftersOf(lines)).toEqual(expect.arrayContaining(["random length", "right"]));
  for (const line of lines) {
    // What is drawn greedily has no key.
    expect(line).toMatch(/, t1 k0/);
    expect(line).toMatch(token);
  }
});

/** Of numbers, and so with the one drafter that knows its way. */
const numbers = {
  ...tinySet,
  drafters: gateDrafters.filter(({ name }) => name === "random length"),
  samplings: gateSamplings.slice(0, 4),
};

test("conv histories that are a row late after a keep", async () => {
  planted.lateHistory = true;
  const lines = linesOf(await runDrafted(reference, numbers));
  expect(lines.length).toBeGreaterThan(3);
  expectAll(lines, any);
});

test("features that stay where a tree's rows were", async () => {
  planted.staleFeatures = true;
  const lines = linesOf(await runDrafted(reference, numbers));
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) expect(line).toMatch(context);
});

test("features that a window leaves to what was there before", async () => {
  planted.lostFeatures = true;
  const right = gateDrafters.filter(({ name }) => name === "right");
  const set = { ...numbers, drafters: right, samplings: gateSamplings.slice(0, 1) };
  // The serial reply leaves the right ones there, unless they are spoilt in between.
  const lines = linesOf(await runDrafted(reference, set));
  expect(lines.length).toBe(2);
  for (const line of lines) expect(line).toMatch(context);
});

test("candidates of a window's last row that are wrong, where they are few", async () => {
  // Greedy replies are narrow ones here; those with top-k are wide, and ask for whole rows.
  const set = { ...tinySet, samplings: gateSamplings.slice(0, 2) };
  const lines = linesOf(await runDrafted(faulty(fake, lastRowOff), set));
  expect(draftersOf(lines)).toEqual(expect.arrayContaining(["auto", "chain", "right"]));
  for (const line of lines) {
    expect(line).toMatch(/, greedy(, past eos)?, narrow/);
    expect(line).toMatch(token);
  }
});

test("windows of which nothing is ever accepted", async () => {
  planted.nothingAccepted = true;
  expect(failedOf(await runDrafted(fake, tinySet))).toEqual([
    expect.stringMatching(/^coverage: .*no windows accepted in part/),
  ]);
});

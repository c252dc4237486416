import { expect, test } from "vitest";
import type { Backend, PassHandle } from "../../backend/backend.ts";
import { FakeBackend } from "../../backend/fake/fake.ts";
import type { Plan } from "../../model/plan.ts";
import { embeddedModel, openBackend } from "../../node.ts";
import type { Weights } from "../../weights/weights.ts";
import { runLine } from "../io.cases.ts";
import { runGate } from "./command.ts";
import { faulty, type Opener } from "./faulty.cases.ts";
import type { GateReport } from "./gate-run.ts";
import { findReference } from "./golden-data.ts";

const fake: Opener = async ({ weights, ...sizes }) =>
  new FakeBackend({ ...sizes, shape: weights.shape });

const wasm: Opener = (options) => openBackend(options, { backend: "wasm", threads: 2 });

const reference: Opener = (options) => openBackend(options, { backend: "reference" });

const run = (name: string, open: Opener, full = false) =>
  runGate(name, { open, model: embeddedModel, drafter, full, references: null }, null);

/** None of these gates drafts. */
const drafter = async () => null;

test("chunks and rows pass on a backend that keeps its word", async () => {
  for (const name of ["chunks", "rows"]) {
    const report = await run(name, fake);
    expect(report).toMatchObject({ gate: name, ok: true, failed: 0 });
    expect(report.passed).toBeGreaterThan(20);
  }
});

test("chunks fails where a chunk's first row forgets its token", async () => {
  const forget = (plan: Plan): Plan => {
    if (plan.ids.length < 2) return plan;
    return { ...plan, ids: [0, ...plan.ids.slice(1)] };
  };
  const report = await run(
    "chunks",
    faulty(fake, (backend) => ({
      prefill: (plan: Plan): PassHandle => backend.prefill(forget(plan)),
    })),
  );
  expect(report.ok).toBe(false);
});

test("chunks fails where a moved state stays behind", async () => {
  const stay = (plan: Plan): Plan => ({
    ...plan,
    segments: plan.segments.map((segment) => ({ ...segment, nextSlot: segment.stateSlot })),
  });
  const report = await run(
    "chunks",
    faulty(fake, (backend) => ({
      prefill: (plan: Plan): PassHandle => backend.prefill(stay(plan)),
    })),
  );
  expect(report.cases.filter((result) => !result.ok).map((result) => result.name)).toContain(
    `${embeddedModel}: moved slots`,
  );
});

test("rows fails where a row sees its neighbour", async () => {
  const leak = (plan: Plan): Plan => {
    const last = plan.ids.length - 1;
    const swapped = [...plan.ids];
    if (last > 0) [swapped[0], swapped[last]] = [swapped[last]!, swapped[0]!];
    return { ...plan, ids: swapped };
  };
  const report = await run(
    "rows",
    faulty(fake, (backend) => ({
      verify: (plan: Plan): PassHandle => backend.verify(leak(plan)),
    })),
  );
  expect(report.failed).toBeGreaterThan(0);
});

test("chunks and rows pass on wasm", { timeout: 400_000 }, async () => {
  for (const name of ["chunks", "rows"]) {
    const report = await run(name, wasm);
    expect(report.cases.filter((result) => !result.ok)).toEqual([]);
    expect(report.passed).toBeGreaterThan(20);
  }
});

/** Names of cells by their first word: q4, bf16, q8, trace, wrapper. */
const parts = (report: GateReport) =>
  new Set(report.cases.map((result) => result.name.split(" ")[0]!));

/** What needs files that are too large for this repository (see CONTRIBUTING.md). */
const originals = findReference("models/nano/config.json", null) !== null;
const wrapper = findReference("golden/tiny_wrapper.safetensors", null) !== null;

for (const [name, open] of [
  ["wasm", wasm],
  ["reference", reference],
] as const) {
  let report: Promise<GateReport>;
  // In full: a busy machine must not leave cells out.
  const once = () => (report ??= run("golden", open, true));

  test(`golden on ${name}: 4-bit tokens and logits`, { timeout: 600_000 }, async () => {
    expect((await once()).cases.filter((result) => !result.ok)).toEqual([]);
    expect(parts(await once())).toContain("q4");
  });

  test.skipIf(!originals)(`golden on ${name}: bf16, 8-bit and the trace`, async () => {
    for (const part of ["bf16", "q8", "trace"]) expect(parts(await once())).toContain(part);
  });

  test.skipIf(!wrapper)(`golden on ${name}: the wrapper checkpoint`, async () => {
    expect(parts(await once())).toContain("wrapper");
  });
}

test("golden fails where one norm is off by a thousandth", async () => {
  const nudged = (weights: Weights): Weights => ({
    ...weights,
    matrix: (path) => weights.matrix(path),
    vector: async (path) => {
      const values = await weights.vector(path);
      return path === "layers.2.post_attention_layernorm" ? values.map((v) => v * 1.001) : values;
    },
  });
  const bad = await run("golden", (options) =>
    wasm({ ...options, weights: nudged(options.weights) }),
  );
  expect(bad.failed).toBeGreaterThan(0);
});

test("synthetic passes on a backend that keeps its word", { timeout: 120_000 }, async () => {
  const report = await run("synthetic", fake);
  expect(report.cases.filter((result) => !result.ok)).toEqual([]);
  expect(report.passed).toBeGreaterThan(30);
  expect(report.backend).toMatch(/seed \d+/);
});

const plantedInWindows: readonly (readonly [string, (backend: Backend) => Partial<Backend>])[] = [
  [
    "a keep takes one row too few",
    (backend) => ({
      keep: (handle, paths) =>
        backend.keep(
          handle,
          paths.map((path) => path.slice(0, -1)),
        ),
    }),
  ],
  [
    "a window is a chain",
    (backend) => ({
      verify: (plan) =>
        backend.verify({
          ...plan,
          segments: plan.segments.map((segment) => ({ ...segment, window: false })),
        }),
      keep: () => {},
    }),
  ],
];

test.each(plantedInWindows)("synthetic fails where %s", async (_, fault) => {
  const report = await run("synthetic", faulty(fake, fault));
  const failed = report.cases.filter((result) => !result.ok).map((result) => result.name);
  expect(failed.some((name) => name.endsWith("partial keeps"))).toBe(true);
});

test.each([
  [["--drafter", "/nowhere"], /^deltafold: .*\/nowhere/],
  [["--drafter", "nano", "--draft-vocab", "64"], /^deltafold: .*drafter/],
  [["--drafter-bits", "3"], /--drafter-bits/],
  [["--draft-tree", "8"], /unknown option '--draft-tree'/],
])("drafted drafts with what is named: %j", async (args, message) => {
  const { code, stderr } = await runLine(["gate", "drafted", ...args]);
  expect(code).toBe(1);
  expect(stderr).toMatch(message);
});

test("an unknown gate is refused with the names of all", async () => {
  await expect(run("golder", fake)).rejects.toThrow(
    /no gate golder: golden, chunks, rows, synthetic, drafted, streams/,
  );
});

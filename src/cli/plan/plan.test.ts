import { expect, test } from "vitest";
import { modelFolder, openEngine } from "../../node.ts";
import { runLine } from "../io.cases.ts";
import type { FoundPlan, PlanReport } from "./report.ts";
import { planText } from "./text.ts";

const planned = async (...args: string[]): Promise<PlanReport> => {
  const { code, stdout, stderr } = await runLine(["plan", ...args, "--json"]);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
};

const only = ({ plans }: PlanReport): FoundPlan => {
  expect(plans).toHaveLength(1);
  return plans[0] as FoundPlan;
};

test("a plan is how the model is then opened, and what that takes", async () => {
  for (const [flags, options] of [
    [[], {}],
    [["--parallel", "3", "--prompt-cache-gib", "0.25"], { parallel: 3, promptCacheBytes: 2 ** 28 }],
    [["--no-drafts", "--context", "1000"], { drafts: false, contextTokens: 1000 }],
    [
      ["--kv-gib", "0.01", "--memory-gib", "1.2"],
      { kvBytes: 0.01 * 2 ** 30, memoryBytes: 1.2 * 2 ** 30 },
    ],
  ] as const) {
    const plan = only(await planned("nano", "--backend", "wasm", "--threads", "2", ...flags));
    await using engine = await openEngine("nano", { threads: 2, ...options });
    const { backend, contextTokens, promptCacheBytes } = engine.info;
    const { weights, states, kv, workspace, prompt_cache } = plan.memory;
    expect(plan).toMatchObject({ fits: true, refusal: null, context_tokens: contextTokens });
    expect([plan.streams, plan.pages, prompt_cache]).toEqual([
      backend.slots,
      backend.pages,
      promptCacheBytes,
    ]);
    expect({
      weightBytes: weights,
      stateBytes: states,
      kvBytes: kv,
      workspaceBytes: workspace,
    }).toEqual(backend.memory);
    expect(plan.drafter === null).toBe(backend.drafter === null);
  }
});

test("the largest context that fits is the default, to the page", async () => {
  const shape = ["--shape", "0.8b", "--backend", "wasm", "--prompt-cache-gib", "0"];
  const memory = ["--memory-gib", "2", "--parallel", "1"];
  const plan = only(await planned(...shape, ...memory));
  const { context_default: most, memory: taken, context_limit: limit } = plan;
  expect(plan).toMatchObject({ fits: true, context_tokens: most, streams: 1 });
  expect(most! % 64).toBe(0);
  // Nine tenths, up to a page and its place in the tables.
  const spare = 0.9 * 2 ** 31 - taken.total;
  expect(spare).toBeGreaterThan(0);
  expect(spare).toBeLessThan(64 * plan.kv_bytes_per_token + 2 ** 17);
  expect(limit).toMatch(/^The model needs 184\d\.\d MiB, 1843\.2 MiB are free\.$/);
  const asked = only(await planned(...shape, ...memory, "--context", String(most! + 20_000)));
  expect(asked).toMatchObject({ fits: false, context_default: most });
  expect(asked.refusal).toMatch(/^The model needs [\d.]+ MiB, 2048\.0 MiB are free\.$/);
});

test("released sizes are planned with a drafter of a released one's proportions", async () => {
  const flags = ["--shape", "4b", "--bits", "8", "--backend", "wasm", "--context", "512"];
  const plain = only(await planned(...flags));
  expect(plain.drafter).toBeNull();
  // 4.2048 G of weights at 8.5 bits.
  expect(Math.abs(plain.read_bytes_per_token / 4.468e9 - 1)).toBeLessThan(0.001);
  const drafted = only(await planned(...flags, "--drafter", "dflash2"));
  const { weights, states, kv, workspace } = drafted.drafter!;
  expect(Math.min(weights, states, kv, workspace)).toBeGreaterThan(0);
  expect(drafted.memory.weights - weights).toBe(plain.memory.weights);
  const other = await runLine(["plan", ...flags, "--drafter", "mtp"]);
  expect([other.code, other.stderr]).toEqual([
    1,
    expect.stringMatching(/none or dflash2, not "mtp"/),
  ]);
});

test("what isn't a model, and what isn't planned, is refused", async () => {
  const missing = await runLine(["plan", "./nowhere", "--backend", "wasm"]);
  expect([missing.code, missing.stdout]).toEqual([1, ""]);
  const reference = await runLine(["plan", "nano", "--backend", "reference"]);
  expect(reference.stderr).toMatch(/reference backend's memory isn't planned/);
  const long = await runLine(["plan", "nano", "--context", "5000", "--backend", "wasm"]);
  expect(long.stderr).toMatch(/The context must be 1 to 4096 tokens for this model, not 5000/);
});

test("by a model's folder it is told the same as by its name", async () => {
  const flags = ["--backend", "wasm", "--memory-gib", "1"];
  const named = await planned("nano", ...flags);
  expect(await planned(modelFolder("nano"), ...flags)).toEqual(named);
});

const found: FoundPlan = {
  ...{ backend: "wasm", device: "8 threads", stored_bytes: 15e9, read_bytes_per_token: 14e9 },
  ...{ context_max: 262_144, context_tokens: 32_768, context_default: 30_720 },
  context_limit: "The model needs 2.0 MiB, 1.0 MiB are free.",
  ...{ streams: 4, pages: 512 },
  memory: {
    ...{ weights: 16e9, states: 6e8, kv: 2 ** 32, workspace: 4e8, prompt_cache: 2 ** 30 },
    ...{ total: 22e9, available: 24e9 },
  },
  drafter: { weights: 1e9, states: 1e8, kv: 2e8, workspace: 3e7 },
  ...{ stream_bytes: 2e8, kv_bytes_per_token: 131_072, fits: true, refusal: null },
};

test("a plan in lines", () => {
  const report: PlanReport = {
    model: "27b",
    bits: 4,
    plans: [found, { backend: "webgpu", missing: "There is no WebGPU adapter on this machine." }],
  };
  expect(planText(report)).toMatchInlineSnapshot(`
    "model      27b in 4 bits

    wasm       on 8 threads
    fits       yes
    context    32768 tokens; by default 30720 tokens of the 262144 that the model supports. With 64 more: The model needs 2.0 MiB, 1.0 MiB are free.
    streams    4 at once; one more takes 190.7 MiB
    weights    14.9 GiB; as stored 14.0 GiB, of which a token reads 13.0 GiB
    states     572.2 MiB
    KV         4.0 GiB for 32768 tokens of all streams and cached prompts; 1024 tokens take 128.0 MiB
    workspace  381.5 MiB
    cache      1.0 GiB of cached states at most
    total      20.5 GiB of 22.4 GiB available
    drafter    of all this 953.7 MiB weights, 95.4 MiB features, 190.7 MiB KV, 28.6 MiB workspace

    webgpu     There is no WebGPU adapter on this machine.

    MiB and GiB are 2^20 and 2^30 bytes."
  `);
});

test("what is known of the context, and of what fits", () => {
  const told = (changes: Partial<FoundPlan>) => {
    const lines = planText({ model: "m", bits: null, plans: [{ ...found, ...changes }] }).split(
      "\n",
    );
    return ["fits", "context"].map((name) => lines.find((line) => line.startsWith(name)));
  };
  const alone = { drafter: null, context_tokens: 30_720 };
  const unknown = { ...found.memory, available: null, prompt_cache: 0 };
  expect(told(alone)[1]).toMatch(
    / 30720 tokens of the 262144 that the model supports\. With 64 more: The model needs/,
  );
  expect(told({ ...alone, context_limit: null, memory: unknown })).toEqual([
    expect.stringMatching(/as far as can be known: .* --memory-gib does/),
    expect.stringMatching(/Unless --kv-gib or --context say, KV takes 4 GiB\./),
  ]);
  const all = { context_tokens: 262_144, context_default: 262_144, context_limit: null };
  expect(told(all)[1]).toMatch(/ 262144 tokens, as many as the model supports/);
  const refusal = "The model needs 9.0 MiB, 1.0 MiB are free.";
  const none = { context_default: null, context_limit: refusal, refusal, fits: false };
  expect(told({ ...none, context_tokens: 64 })).toEqual([
    expect.stringMatching(/ no\. The model needs 9\.0 MiB/),
    expect.stringMatching(/ 64 tokens; none fits/),
  ]);
});

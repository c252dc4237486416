import { expect, test } from "vitest";
import { FakeBackend } from "../backend/fake/fake.ts";
import type { Drafting, DraftingSource } from "../draft/drafting.ts";
import type { TokenId } from "../ids.ts";
import { windowRowsMax } from "../limits.ts";
import { tinyDrafterShape } from "../model/drafter-shape.ts";
import { tinyShape } from "../model/tiny-shape.ts";
import { type LogitAdjustments, noAdjustments } from "../sampling/adjust.ts";
import { plainSampling } from "../sampling/params.ts";
import type { RoundOutcome, RoundRequest } from "./live-stream.ts";
import { RoundLoop } from "./loop.ts";
import { WildDrafting } from "./wild-drafting.cases.ts";

/**
 * Random arrivals, lengths, cancels and failed passes against one oracle: a stream's tokens are a
 * prefix of what it gets alone, and all of it where it ended by itself. Replay: SIM_SEED=n.
 */
const seeds = process.env["SIM_SEED"]
  ? [Number(process.env["SIM_SEED"])]
  : Array.from({ length: 200 }, (_, seed) => seed);

const contextTokens = 256;
const shape = tinyShape();
const drafter = { weights: { shape: tinyDrafterShape(shape) } };

/** Never proposes; its streams' contexts are kept all the same. */
const silent: DraftingSource = (): Drafting => ({
  push: () => {},
  wish: () => ({ kind: "none" }),
  choose: () => null,
  landed: () => {},
  idle: () => {},
});

function generator(seed: number): (below: number) => number {
  let state = (seed * 2654435761 + 1) >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function randomAdjustments(random: (below: number) => number): LogitAdjustments {
  return {
    repetitionPenalty: 1 + random(3) / 2,
    presencePenalty: random(5) - 2,
    frequencyPenalty: random(3) - 1,
    logitBias: new Map(Array.from({ length: random(4) }, () => [random(300), random(9) - 4])),
  };
}

function randomRequest(random: (below: number) => number): RoundRequest {
  const promptTokens = 1 + random(random(4) === 0 ? 150 : 20);
  return {
    promptIds: Array.from({ length: promptTokens }, () => random(shape.vocabSize)),
    maxTokens: 1 + random(random(4) === 0 ? 80 : 12),
    sampling: {
      ...plainSampling,
      temperature: random(2),
      topK: random(30),
      seed: BigInt(random(9)),
      adjust: random(3) === 0 ? randomAdjustments(random) : noAdjustments,
    },
    draft: random(8) > 0,
    eosIds: new Set(Array.from({ length: random(8) }, () => random(shape.vocabSize))),
    fingerprint: random(3) === 0,
  };
}

interface Served {
  readonly request: RoundRequest;
  readonly ids: TokenId[];
  readonly outcome: Promise<RoundOutcome>;
}

/** A request alone, a row a round. */
async function plain(request: RoundRequest): Promise<{ ids: TokenId[]; outcome: RoundOutcome }> {
  const [, loop] = open(1, () => {}, silent);
  const { ids, outcome } = serve(loop, { ...request, draft: true }, -1);
  return { ids, outcome: await outcome };
}

function serve(loop: RoundLoop, request: RoundRequest, cancelAt: number): Served {
  const ids: TokenId[] = [];
  const { promise, resolve } = Promise.withResolvers<RoundOutcome>();
  const cancel = loop.submit(request, {
    prefilled: () => {},
    token: (id) => {
      ids.push(id);
      if (ids.length === cancelAt) cancel();
      return false;
    },
    finished: resolve,
  });
  if (cancelAt === 0) cancel();
  return { request, ids, outcome: promise };
}

function open(
  slots: number,
  fault: (pass: number) => void = () => {},
  drafting: DraftingSource | null = null,
): [FakeBackend, RoundLoop] {
  const pages = slots * Math.ceil(contextTokens / 64);
  const drawsMax = slots * windowRowsMax;
  const sizes = { shape, slots, pages, rowsMax: 128, drawsMax };
  const backend = new FakeBackend({ ...sizes, fault, ...(drafting && { drafter }) });
  return [backend, new RoundLoop(backend, { chunkRows: 32, drafting })];
}

async function simulate(seed: number, drafts: boolean): Promise<void> {
  const random = generator(seed);
  const slots = 1 + random(4);
  const failing = new Set(random(3) === 0 ? [1 + random(30)] : []);
  const fault = (pass: number) => {
    if (failing.has(pass)) throw new Error("planted");
  };
  const requests = Array.from({ length: 1 + random(8) }, () => randomRequest(random));
  const expected = await Promise.all(requests.map(plain));
  let submitted = 0;
  const source: DraftingSource = () => {
    const index = submitted - 1;
    const truth = [...requests[index]!.promptIds, ...expected[index]!.ids];
    return new WildDrafting(random, truth, shape.vocabSize);
  };
  const [backend, loop] = open(slots, fault, drafts ? source : null);
  const served: Served[] = [];
  for (const request of requests) {
    submitted++;
    served.push(serve(loop, request, random(4) === 0 ? random(6) : -1));
    // Some arrive together, some rounds later.
    for (let turns = random(12); turns > 0; turns--) await Promise.resolve();
  }
  for (const [index, { ids, outcome }] of served.entries()) {
    const { reason, error, stateSha, contextSha } = await outcome;
    const alone = expected[index]!;
    expect(ids).toEqual(alone.ids.slice(0, ids.length));
    if (error) expect(error.message).toMatch(/planted/);
    if (reason !== "stop" && reason !== "length") continue;
    expect(reason).toBe(alone.outcome.reason);
    expect(ids).toEqual(alone.ids);
    expect(stateSha).toBe(alone.outcome.stateSha);
    const drafted = drafts && requests[index]!.draft;
    expect(contextSha).toBe(drafted ? alone.outcome.contextSha : null);
  }
  expect(loop.free).toEqual({ slots, pages: backend.info.pages });
  expect(backend.openSlots.size).toBe(0);
}

test.each(seeds)("seed %i", async (seed) => {
  await simulate(seed, false);
});

test.each(seeds)("seed %i, with drafts of every kind", async (seed) => {
  await simulate(seed, true);
});

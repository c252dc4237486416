import { expect, test } from "vitest";
import { FakeBackend } from "../backend/fake/fake.ts";
import type { TokenId } from "../ids.ts";
import { tinyShape } from "../model/tiny-shape.ts";
import type { RoundOutcome, RoundRequest } from "./live-stream.ts";
import { RoundLoop } from "./loop.ts";

/**
 * Random arrivals, lengths, cancels and failed passes against one oracle: a stream's tokens are a
 * prefix of what it gets alone, and all of it where it ended by itself. Replay: SIM_SEED=n.
 */
const seeds = process.env["SIM_SEED"]
  ? [Number(process.env["SIM_SEED"])]
  : Array.from({ length: 200 }, (_, seed) => seed);

const contextTokens = 256;
const shape = tinyShape();

function generator(seed: number): (below: number) => number {
  let state = (seed * 2654435761 + 1) >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function randomRequest(random: (below: number) => number): RoundRequest {
  const promptTokens = 1 + random(random(4) === 0 ? 150 : 20);
  return {
    promptIds: Array.from({ length: promptTokens }, () => random(shape.vocabSize)),
    maxTokens: 1 + random(random(4) === 0 ? 80 : 12),
    sampling: {
      temperature: random(2),
      topK: random(30),
      topP: 1,
      minP: 0,
      seed: BigInt(random(9)),
    },
    eosIds: new Set(Array.from({ length: random(8) }, () => random(shape.vocabSize))),
    fingerprint: random(3) === 0,
  };
}

interface Served {
  readonly request: RoundRequest;
  readonly ids: TokenId[];
  readonly outcome: Promise<RoundOutcome>;
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

function open(slots: number, fault: (pass: number) => void = () => {}): [FakeBackend, RoundLoop] {
  const pages = slots * Math.ceil(contextTokens / 64);
  const sizes = { shape, slots, pages, rowsMax: 128, drawsMax: slots };
  const backend = new FakeBackend({ ...sizes, fault });
  return [backend, new RoundLoop(backend, 32)];
}

async function simulate(seed: number): Promise<void> {
  const random = generator(seed);
  const slots = 1 + random(4);
  const failing = new Set(random(3) === 0 ? [1 + random(30)] : []);
  const [backend, loop] = open(slots, (pass) => {
    if (failing.has(pass)) throw new Error("planted");
  });
  const served: Served[] = [];
  for (let count = 1 + random(8); count > 0; count--) {
    const cancelAt = random(4) === 0 ? random(6) : -1;
    served.push(serve(loop, randomRequest(random), cancelAt));
    // Some arrive together, some rounds later.
    for (let turns = random(12); turns > 0; turns--) await Promise.resolve();
  }
  for (const { request, ids, outcome } of served) {
    const { reason, stateSha } = await outcome;
    const [, alone] = open(1);
    const expected = serve(alone, request, -1);
    const end = await expected.outcome;
    expect(ids).toEqual(expected.ids.slice(0, ids.length));
    if (reason === "stop" || reason === "length") {
      expect(reason).toBe(end.reason);
      expect(ids).toEqual(expected.ids);
      expect(stateSha).toBe(end.stateSha);
    }
  }
  expect(loop.free).toEqual({ slots, pages: backend.info.pages });
  expect(backend.openSlots.size).toBe(0);
}

test.each(seeds)("seed %i", async (seed) => {
  await simulate(seed);
});

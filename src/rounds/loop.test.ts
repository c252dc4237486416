import { expect, test } from "vitest";
import type { Candidates } from "../backend/candidates.ts";
import type { FakeOptions } from "../backend/fake/fake.ts";
import { FakeBackend } from "../backend/fake/fake.ts";
import { QueueFullError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { queueRequestsMax } from "../limits.ts";
import { tinyShape } from "../model/tiny-shape.ts";
import { chancesOf, type DrawChances } from "../sampling/chances.ts";
import { plainSampling, type SamplingParams } from "../sampling/params.ts";
import type { RoundOutcome, RoundRequest } from "./live-stream.ts";
import { RoundLoop } from "./loop.ts";

const greedy: SamplingParams = { ...plainSampling, temperature: 0, seed: 1n };

function fake(changes: Partial<FakeOptions> = {}): FakeBackend {
  return new FakeBackend({
    shape: tinyShape(),
    slots: 1,
    pages: 40,
    rowsMax: 128,
    drawsMax: 16,
    ...changes,
  });
}

function request(changes: Partial<RoundRequest> = {}): RoundRequest {
  return {
    promptIds: [3, 1, 4, 1, 5],
    maxTokens: 12,
    sampling: greedy,
    eosIds: new Set(),
    fingerprint: false,
    draft: true,
    ...changes,
  };
}

interface Run {
  readonly ids: TokenId[];
  readonly outcome: Promise<RoundOutcome>;
  readonly cancel: () => void;
}

/** Submits a request; `stopAt` ends it as a stop string would, `onToken` looks on. */
function start(
  loop: RoundLoop,
  changes: Partial<RoundRequest> = {},
  onToken?: (run: Run) => boolean,
) {
  const ids: TokenId[] = [];
  const { promise, resolve } = Promise.withResolvers<RoundOutcome>();
  let run: Run;
  const cancel = loop.submit(request(changes), {
    prefilled: () => expect(ids).toEqual([]),
    token: (id) => {
      ids.push(id);
      return onToken?.(run) ?? false;
    },
    finished: resolve,
  });
  run = { ids, outcome: promise, cancel };
  return run;
}

/** A request alone, on a backend of its own. */
async function solo(changes: Partial<RoundRequest> = {}, chunk = 128) {
  const backend = fake();
  const run = start(new RoundLoop(backend, { chunkRows: chunk }), changes);
  const outcome = await run.outcome;
  expect(backend.openSlots.size).toBe(0);
  return { ids: run.ids, ...outcome };
}

test("ends at max tokens, at an eos id, and where the sink says so", async () => {
  const whole = await solo();
  expect(whole).toMatchObject({ reason: "length", error: null });
  expect(whole.ids).toHaveLength(12);
  const eos = await solo({ eosIds: new Set([whole.ids[4]!]) });
  expect(eos.reason).toBe("stop");
  expect(eos.ids).toEqual(whole.ids.slice(0, whole.ids.indexOf(whole.ids[4]!) + 1));
  const first = await solo({ eosIds: new Set([whole.ids[0]!]) });
  expect(first.ids).toEqual([whole.ids[0]]);
  const stopped = start(
    new RoundLoop(fake(), { chunkRows: 128 }),
    {},
    (run) => run.ids.length === 3,
  );
  expect((await stopped.outcome).reason).toBe("stop");
  expect(stopped.ids).toEqual(whole.ids.slice(0, 3));
  const one = await solo({ maxTokens: 1 });
  expect(one.ids).toEqual(whole.ids.slice(0, 1));
});

test("prompt chunks of any size give the same tokens and state", async () => {
  const promptIds = Array.from({ length: 150 }, (_, i) => (i * 7) % 300);
  const whole = await solo({ promptIds, fingerprint: true });
  expect(whole.stateSha).toMatch(/^[0-9a-f]{64}$/);
  for (const chunk of [1, 7, 64, 127]) {
    const { ids, stateSha } = await solo({ promptIds, fingerprint: true }, chunk);
    expect(ids).toEqual(whole.ids);
    expect(stateSha).toBe(whole.stateSha);
  }
});

test("a stream's tokens don't depend on who else is served", async () => {
  const requests = Array.from({ length: 12 }, (_, i) => ({
    promptIds: Array.from({ length: 1 + ((i * 37) % 140) }, (_, j) => (i * 91 + j * 13) % 300),
    maxTokens: 1 + ((i * 5) % 20),
    sampling: { ...greedy, temperature: i % 2, seed: BigInt(i) },
    fingerprint: true,
  }));
  const backend = fake({ slots: 4 });
  const loop = new RoundLoop(backend, { chunkRows: 32 });
  const runs = requests.map((changes) => start(loop, changes));
  for (const [index, run] of runs.entries()) {
    const { stateSha } = await run.outcome;
    const alone = await solo(requests[index]);
    expect(run.ids, `request ${index}`).toEqual(alone.ids);
    expect(stateSha).toBe(alone.stateSha);
  }
  expect(loop.free).toEqual({ slots: 4, pages: 40 });
  expect(loop.counts).toEqual({ waiting: 0, running: 0 });
});

test("a cancelled stream ends within a round, waiting, filling or decoding", async () => {
  const backend = fake();
  const loop = new RoundLoop(backend, { chunkRows: 4 });
  const promptIds = Array.from({ length: 60 }, (_, i) => i);
  const filling = start(loop, { promptIds });
  const waiting = start(loop);
  waiting.cancel();
  filling.cancel();
  expect((await filling.outcome).reason).toBe("cancelled");
  expect((await waiting.outcome).reason).toBe("cancelled");
  expect([...filling.ids, ...waiting.ids]).toEqual([]);
  const decoding = start(loop, { maxTokens: 500 }, (run) => {
    if (run.ids.length === 3) run.cancel();
    return false;
  });
  expect((await decoding.outcome).reason).toBe("cancelled");
  expect(decoding.ids).toHaveLength(3);
  expect(loop.free).toEqual({ slots: 1, pages: 40 });
  expect(backend.openSlots.size).toBe(0);
  expect((await start(loop).outcome).reason).toBe("length");
});

test("a pass that fails ends its streams, and the next request is served", async () => {
  const alone = await solo();
  for (const pass of [1, 2, 5]) {
    const backend = fake({
      fault: (number) => {
        if (number === pass) throw new Error("planted");
      },
    });
    const loop = new RoundLoop(backend, { chunkRows: 128 });
    const { reason, error, stateSha } = await start(loop, { fingerprint: true }).outcome;
    expect([reason, stateSha]).toEqual(["error", null]);
    expect(error!.message).toMatch(/planted/);
    const next = start(loop);
    await next.outcome;
    expect(next.ids).toEqual(alone.ids);
    expect(loop.free.slots).toBe(1);
  }
});

test("logits that aren't finite end their own stream alone", async () => {
  const alone = await solo({ promptIds: [9, 9] });
  const backend = fake({ slots: 2, logits: poisonAfter([8, 8, 8]) });
  const loop = new RoundLoop(backend, { chunkRows: 128 });
  const bad = start(loop, { promptIds: [8, 8, 8] });
  const good = start(loop, { promptIds: [9, 9] });
  const { reason, error } = await bad.outcome;
  expect(reason).toBe("error");
  expect(error!.code).toBe("non_finite_logits");
  expect(bad.ids).toEqual([]);
  await good.outcome;
  expect(good.ids).toEqual(alone.ids);
});

/** Makes the row after exactly this prompt NaN. */
function poisonAfter(promptIds: readonly TokenId[]): NonNullable<FakeOptions["logits"]> {
  let target = -1;
  const probe = fake({ logits: (_, history) => (target = history) });
  const loop = new RoundLoop(probe, { chunkRows: 128 });
  start(loop, { promptIds, maxTokens: 1 });
  return (row, history) => {
    if (history === target) row[0] = Number.NaN;
  };
}

test("a listener that throws ends its own stream, and the others never notice", async () => {
  const alone = await solo();
  const loop = new RoundLoop(fake({ slots: 2 }), { chunkRows: 128 });
  const bad = start(loop, { promptIds: [8] }, () => {
    throw new Error("planted");
  });
  const good = start(loop);
  expect((await bad.outcome).error!.message).toMatch(/planted/);
  await good.outcome;
  expect(good.ids).toEqual(alone.ids);
  loop.submit(request(), {
    prefilled: () => {},
    token: () => false,
    finished: () => {
      throw new Error("planted");
    },
  })();
  expect((await start(loop).outcome).reason).toBe("length");
  expect(loop.free).toEqual({ slots: 2, pages: 40 });
});

test("the queue is bounded", async () => {
  const loop = new RoundLoop(fake(), { chunkRows: 128 });
  const runs = Array.from({ length: 1 + queueRequestsMax }, () => start(loop));
  expect(() => start(loop)).toThrow(/already waiting/);
  await loop[Symbol.asyncDispose]();
  for (const run of runs) expect((await run.outcome).reason).toBe("cancelled");
  expect(loop.free.slots).toBe(1);
  expect(() => start(loop)).toThrow(/closed/);
});

test("a long prompt doesn't hold up a stream that decodes, nor a short prompt", async () => {
  const order: string[] = [];
  const loop = new RoundLoop(fake({ slots: 3, pages: 60 }), { chunkRows: 4 });
  const log = (name: string) => () => {
    order.push(name);
    return false;
  };
  const first = start(loop, { maxTokens: 30 }, log("first"));
  const promptIds = Array.from({ length: 100 }, (_, i) => i);
  const long = start(loop, { promptIds, maxTokens: 1 }, log("long"));
  const short = start(loop, { maxTokens: 1 }, log("short"));
  await Promise.all([first.outcome, long.outcome, short.outcome]);
  expect(order.indexOf("short")).toBeLessThan(order.indexOf("long"));
  expect(
    order.slice(0, order.indexOf("long")).filter((name) => name === "first").length,
  ).toBeGreaterThan(15);
});

test("chances come with every token, and are those of its whole row", async () => {
  const rows: Candidates[] = [];
  const chances: (DrawChances | null)[] = [];
  const loop = new RoundLoop(fake(), { chunkRows: 128 });
  const { promise, resolve } = Promise.withResolvers<RoundOutcome>();
  loop.submit(request({ topChances: 3 }), {
    prefilled: () => {},
    row: (row) => rows.push(row),
    token: (id, of) => {
      expect(of).toEqual(chancesOf(rows.at(-1)!, id, 3));
      chances.push(of);
      return false;
    },
    finished: resolve,
  });
  expect((await promise).error).toBeNull();
  expect(chances).toHaveLength(12);
  expect(chances.every((each) => each!.top[0]!.id === each!.id)).toBe(true);
});

test("a prompt's chances don't depend on how it is cut, and cost its reply nothing", async () => {
  const promptIds = Array.from({ length: 45 }, (_, at) => (at * 7) % 50);
  const told = async (chunk: number, maxTokens: number) => {
    const loop = new RoundLoop(fake(), { chunkRows: chunk });
    const found = new Map<number, DrawChances>();
    const ids: TokenId[] = [];
    const { promise, resolve } = Promise.withResolvers<RoundOutcome>();
    loop.submit(request({ promptIds, maxTokens, topChances: 2, promptChances: true }), {
      prefilled: () => {},
      token: (id) => {
        ids.push(id);
        return false;
      },
      promptToken: (position, of) => found.set(position, of),
      finished: resolve,
    });
    expect(await promise).toMatchObject({ reason: "length", error: null });
    return { ids, found };
  };
  const whole = await told(128, 6);
  expect([...whole.found.keys()]).toEqual(promptIds.slice(1).map((_, at) => at + 1));
  for (const [position, { id, top }] of whole.found) {
    expect([id, top.length]).toEqual([promptIds[position], 2]);
  }
  expect(whole.ids).toEqual((await solo({ promptIds, maxTokens: 6 })).ids);
  for (const chunk of [1, 7, 16]) expect(await told(chunk, 6)).toEqual(whole);
  expect(await told(128, 0)).toEqual({ ids: [], found: whole.found });
});

test("a request for a prompt's chances alone is one that is queued and counted", async () => {
  const loop = new RoundLoop(fake(), { chunkRows: 128, queueMax: 1 });
  const ask = { maxTokens: 0, promptChances: true };
  const runs = [start(loop, ask), start(loop, ask)];
  expect(loop.counts).toEqual({ waiting: 2, running: 0 });
  expect(() => start(loop, ask)).toThrow(QueueFullError);
  for (const { outcome } of runs) expect((await outcome).reason).toBe("length");
});

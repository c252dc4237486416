import { expect, test } from "vitest";
import { FakeBackend, type FakeOptions } from "../backend/fake/fake.ts";
import { BackendError } from "../errors.ts";
import { tinyShape } from "../model/tiny-shape.ts";
import { plainSampling } from "../sampling/params.ts";
import type { RoundOutcome, RoundRequest } from "./live-stream.ts";
import { type LoopOptions, RoundLoop } from "./loop.ts";
import { sameTokenDrafting, sameTokenLogits } from "./same-token.cases.ts";
import type { LoopTotals } from "./totals.ts";

/** Every reply says one token for ever. */
function loopOf(changes: Partial<FakeOptions> = {}, options: Partial<LoopOptions> = {}) {
  const sizes = { shape: tinyShape(), slots: 2, pages: 40, rowsMax: 64, drawsMax: 64 };
  const backend = new FakeBackend({ ...sizes, logits: sameTokenLogits, ...changes });
  const cache = { bytesMax: 2 ** 20, spill: null };
  return new RoundLoop(backend, { chunkRows: 64, cache, ...options });
}

async function serve(loop: RoundLoop, changes: Partial<RoundRequest>): Promise<RoundOutcome> {
  const request: RoundRequest = {
    ...{ promptIds: [3, 1, 4], maxTokens: 10, fingerprint: false, draft: true },
    ...{ sampling: { ...plainSampling, temperature: 0, seed: 1n }, eosIds: new Set(), ...changes },
  };
  return await new Promise((finished) => {
    loop.submit(request, { prefilled: () => {}, token: () => false, finished });
  });
}

const none: LoopTotals = {
  ...{ promptTokens: 0, lookedUpTokens: 0, cachedTokens: 0, replyTokens: 0, decodeRounds: 0 },
  ...{ roundTokens: 0, draftedTokens: 0, acceptedTokens: 0, parks: 0 },
};

test("a plain reply has a round a token behind its first", async () => {
  const loop = loopOf();
  expect(loop.totals).toEqual(none);
  await serve(loop, {});
  const totals = { ...none, promptTokens: 3, replyTokens: 10, decodeRounds: 9, roundTokens: 9 };
  expect(loop.totals).toEqual(totals);
});

test("drafts are counted as they land", async () => {
  const loop = loopOf({}, { drafting: () => sameTokenDrafting });
  await serve(loop, {});
  // Two rounds of three drafts, and one that has room for two.
  expect(loop.totals).toEqual({
    ...{ ...none, promptTokens: 3, replyTokens: 10, decodeRounds: 3, roundTokens: 9 },
    ...{ draftedTokens: 8, acceptedTokens: 6 },
  });
});

test("streams share rounds, each with its tokens", async () => {
  const loop = loopOf();
  await Promise.all([serve(loop, {}), serve(loop, { promptIds: [2, 7] })]);
  const { promptTokens, replyTokens, decodeRounds, roundTokens } = loop.totals;
  // The second prompt is computed while the first decodes.
  expect({ promptTokens, replyTokens, decodeRounds, roundTokens }).toEqual({
    ...{ promptTokens: 5, replyTokens: 20, decodeRounds: 10, roundTokens: 18 },
  });
});

test("prompts say what of them was looked up, and found", async () => {
  const loop = loopOf();
  const promptIds = Array.from({ length: 100 }, (_, at) => at);
  const marks = [{ rows: 90, kind: "history" }] as const;
  await serve(loop, { promptIds, maxTokens: 1, marks });
  await serve(loop, { promptIds, maxTokens: 1, marks });
  await serve(loop, { promptIds, maxTokens: 1 });
  expect(loop.totals).toMatchObject({ promptTokens: 300, lookedUpTokens: 200, cachedTokens: 90 });
});

test("what only warms the cache is nobody's prompt", async () => {
  const loop = loopOf();
  const marks = [{ rows: 3, kind: "history" }] as const;
  await serve(loop, { maxTokens: 0, marks, priority: "background" });
  expect(loop.totals).toEqual(none);
});

test("a stream that yields is parked, and its prompt is counted once", async () => {
  const loop = loopOf({ slots: 1 });
  const background = serve(loop, { priority: "background", maxTokens: 20 });
  while (loop.totals.replyTokens < 3) await Promise.resolve();
  await serve(loop, { maxTokens: 2 });
  await background;
  expect(loop.totals).toMatchObject({ promptTokens: 6, replyTokens: 22, parks: 1 });
});

test("streams that give way for lack of pages are counted", async () => {
  const loop = loopOf({ pages: 20 }, { cache: { bytesMax: 0, spill: null } });
  const promptIds = [3, 1, 4];
  // Each is promised 9 pages, and comes to need 15.
  const both = [0, 1].map(() => serve(loop, { promptIds, maxTokens: 950 }));
  let held = 0;
  const watched = Promise.all(both).then(() => true);
  while (!(await Promise.race([watched, Promise.resolve(false)]))) {
    held = Math.max(held, loop.pages.held);
  }
  expect(loop.totals).toMatchObject({ promptTokens: 6, replyTokens: 1900, parks: 1 });
  expect(loop.pages).toEqual({ held: 0, total: 20 });
  expect(held).toBe(20);
});

test("tokens of a round that failed are none", async () => {
  const fault = (pass: number) => {
    if (pass === 4) throw new BackendError("it broke");
  };
  const loop = loopOf({ fault });
  expect(await serve(loop, {})).toMatchObject({ reason: "error" });
  expect(loop.totals).toMatchObject({ promptTokens: 3, replyTokens: 3, roundTokens: 2 });
});

test("a stream says how long it waited for its slot", async () => {
  let nowMs = 0;
  const clock = { nowMs: () => nowMs, unixSeconds: () => 0 };
  const onPass = () => {
    nowMs += 10;
  };
  const loop = loopOf({ slots: 1, onPass }, { clock });
  const first = serve(loop, { maxTokens: 5 });
  const second = serve(loop, { maxTokens: 1 });
  expect((await first).queueMs).toBe(0);
  expect((await second).queueMs).toBe(50);
});

import { expect, test } from "vitest";
import type { Health } from "../api/server.ts";
import { History } from "./history.ts";
import type { Reading } from "./readings.ts";

const absent: Omit<Reading, "atMs"> = {
  running: null,
  waiting: null,
  slots: null,
  replyTokensPerSecond: null,
  promptTokensPerSecond: null,
  cachedShare: null,
  acceptedShare: null,
  tokensPerRound: null,
  kvShare: null,
  promptCacheBytes: null,
  residentBytes: null,
};

const poll = (atMs: number, figures: Record<string, number>, health: Health | null = null) => ({
  atMs,
  samples: new Map(Object.entries(figures).map(([name, value]) => [`deltafold_${name}`, value])),
  health,
});

/** What the last of some polls is read as. */
function read(...polls: ReturnType<typeof poll>[]): Reading {
  const history = new History();
  for (const each of polls) history.add(each);
  return history.readings.at(-1)!;
}

test("what isn't told is absent", () => {
  expect(read(poll(0, {}))).toEqual({ atMs: 0, ...absent });
  expect(read(poll(0, {}), poll(1000, {}))).toEqual({ atMs: 1000, ...absent });
});

test("rates are differences", () => {
  const before = {
    prompt_tokens_total: 100,
    prompt_tokens_cached_total: 10,
    generation_tokens_total: 50,
    decode_rounds_total: 20,
    draft_tokens_total: 40,
    draft_accepted_tokens_total: 30,
  };
  const now = {
    prompt_tokens_total: 200,
    prompt_tokens_cached_total: 60,
    generation_tokens_total: 80,
    decode_rounds_total: 35,
    draft_tokens_total: 60,
    draft_accepted_tokens_total: 35,
    requests_running: 1,
    requests_waiting: 2,
    slots: 4,
    kv_cache_usage_ratio: 0.5,
    prompt_cache_bytes: 1024,
    process_resident_bytes: 2048,
  };
  expect(read(poll(0, before), poll(2000, now))).toEqual({
    atMs: 2000,
    running: 1,
    waiting: 2,
    slots: 4,
    replyTokensPerSecond: 15,
    promptTokensPerSecond: 25,
    cachedShare: 0.5,
    acceptedShare: 0.25,
    tokensPerRound: 2,
    kvShare: 0.5,
    promptCacheBytes: 1024,
    residentBytes: 2048,
  });
});

test("a server without metrics tells its health", () => {
  const health = { requests: { running: 1, waiting: 0 }, slots: 2, prompt_cache: { bytes: 3 } };
  expect(read(poll(0, {}, health))).toEqual({
    ...absent,
    ...{ atMs: 0, running: 1, waiting: 0, slots: 2, promptCacheBytes: 3 },
  });
});

test("nothing done is a rate of 0, and a share of nothing is absent", () => {
  const idle = {
    generation_tokens_total: 5,
    draft_tokens_total: 5,
    draft_accepted_tokens_total: 1,
  };
  expect(read(poll(0, idle), poll(1000, idle))).toMatchObject({
    replyTokensPerSecond: 0,
    acceptedShare: null,
  });
});

test("a server that began anew has no rate for a moment", () => {
  const counted = (generation_tokens_total: number) => ({ generation_tokens_total });
  expect(read(poll(0, counted(50)), poll(1000, counted(3))).replyTokensPerSecond).toBeNull();
  expect(
    read(poll(0, counted(50)), poll(1000, counted(3)), poll(2000, counted(7))).replyTokensPerSecond,
  ).toBe(4);
});

test("a pause isn't one moment, and old readings go", () => {
  const history = new History();
  history.add(poll(0, { generation_tokens_total: 1 }));
  history.pause();
  history.add(poll(60_000, { generation_tokens_total: 1000 }));
  expect(history.readings.at(-1)!.replyTokensPerSecond).toBeNull();
  for (let at = 0; at < 700; at++) history.add(poll(61_000 + at * 1000, {}));
  expect(history.readings).toHaveLength(600);
});

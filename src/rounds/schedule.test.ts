import { expect, test } from "vitest";
import type { Clock } from "../clock.ts";
import { streamId } from "../ids.ts";
import { plainSampling } from "../sampling/params.ts";
import { DecodeShare } from "./decode-share.ts";
import { FinishRate } from "./finish-rate.ts";
import { LiveStream } from "./live-stream.ts";
import { byTurn, nextToAdmit, nextToFill, passOver, promote, toYield } from "./schedule.ts";

/** Streams with so many tokens to fill, the first to come first; negative: of the background. */
function streams(...tokens: number[]): LiveStream[] {
  return tokens.map((count, index) => {
    const request = {
      promptIds: new Array<number>(Math.abs(count)).fill(0),
      maxTokens: 1,
      sampling: { ...plainSampling, seed: 0n },
      eosIds: new Set<number>(),
      fingerprint: false,
      draft: false,
      priority: count < 0 ? "background" : "foreground",
    } as const;
    const sink = { prefilled: () => {}, token: () => false, finished: () => {} };
    return new LiveStream(streamId(index), request, sink, null, 0);
  });
}

const filling = (...tokens: number[]): LiveStream[] => {
  const all = streams(...tokens);
  for (const stream of all) stream.phase = "filling";
  return all;
};

test("the prompt with the fewest tokens left is filled first, the first to come among equals", () => {
  expect(nextToFill(filling(9, 3, 3, 5))?.id).toBe(1);
  expect(nextToFill(streams(9, 3))).toBeNull();
});

test("a prompt that was passed over eight times has its turn", () => {
  const all = filling(1000, 3);
  const order = Array.from({ length: 18 }, () => {
    const next = nextToFill(all)!;
    passOver(all, next);
    return next.id;
  });
  expect(order).toEqual([...new Array(8).fill(1), 0, ...new Array(8).fill(1), 0]);
});

test("one whose state is being read waits for it", () => {
  const all = filling(9, 3);
  all[1]!.reading = Promise.resolve();
  expect(nextToFill(all)?.id).toBe(0);
});

test("background streams come last, and yield to any other", () => {
  const all = streams(-5, 7, -2);
  expect([...all].sort(byTurn).map(({ id }) => id)).toEqual([1, 0, 2]);
  expect(nextToAdmit(all)?.id).toBe(1);
  all[1]!.phase = "decoding";
  expect(nextToAdmit(all)).toBeNull();
  expect(nextToAdmit(streams(-5, -2))?.id).toBe(0);
  expect(toYield(all)).toEqual([]);
  all[2]!.slot = 3 as never;
  expect(toYield(all).map(({ id }) => id)).toEqual([2]);
  expect(toYield([all[0]!, all[2]!])).toEqual([]);
});

test("a background request that has yielded for a minute yields no more", () => {
  const all = streams(-5, 7, -2);
  promote(all, 60_000);
  expect(nextToAdmit(all)?.id).toBe(1);
  promote(all, 60_001);
  expect([...all].sort(byTurn).map(({ id }) => id)).toEqual([0, 1, 2]);
  expect(nextToAdmit(all)?.id).toBe(0);
});

/** Passes that take so many ms each, on a virtual clock. */
function rounds(share: number) {
  let now = 0;
  const clock: Clock = { nowMs: () => now, unixSeconds: () => 0 };
  const divided = new DecodeShare(share);
  const spend = async (ms: number) => {
    await Promise.resolve();
    now += ms;
    return ms;
  };
  const round = async (fillMs: number | null, decodeMs: number | null) => {
    const fill = fillMs === null ? null : spend(fillMs);
    const decode =
      decodeMs === null ? null : (fill ?? Promise.resolve()).then(() => spend(decodeMs));
    return await divided.wait(clock, fill, decode);
  };
  return { divided, round };
}

test("after a chunk, replies have their share of the time before the next", async () => {
  const { divided, round } = rounds(0.25);
  expect(await round(30, 2)).toEqual([30, 2]);
  let decodes = 1;
  for (; !divided.fillDue; decodes++) await round(null, 2);
  // A quarter of the time: 30 ms of prompt to 10 of replies.
  expect(decodes).toBe(5);
});

test("a share of 0 fills in every round, and so does a round without replies", async () => {
  const none = rounds(0);
  await none.round(30, 1);
  expect(none.divided.fillDue).toBe(true);
  const { divided, round } = rounds(0.9);
  await round(30, 1);
  expect(divided.fillDue).toBe(false);
  await round(30, null);
  expect(divided.fillDue).toBe(true);
});

test("the rate of ends counts no idle time", () => {
  const rate = new FinishRate();
  rate.begin(0);
  rate.add(4000);
  rate.idle(4000);
  rate.begin(1_000_000);
  rate.add(1_004_000);
  expect(rate.secondsEach).toBe(4);
});

test("the rate of ends is in whole seconds, from 1 to 60", () => {
  const rate = new FinishRate();
  rate.begin(0);
  expect(rate.secondsEach).toBeNull();
  rate.add(0);
  expect(rate.secondsEach).toBeNull();
  rate.add(100);
  expect(rate.secondsEach).toBe(1);
  for (let end = 1; end <= 16; end++) rate.add(100 + end * 2500);
  expect(rate.secondsEach).toBe(3);
  rate.add(10_000_000);
  expect(rate.secondsEach).toBe(60);
});

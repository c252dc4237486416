import { expect, test } from "vitest";
import type { Reply } from "../stream.ts";
import type { Exchange, Served } from "./exchange.ts";
import type { Histogram } from "./exposition.ts";
import { ServedCounts } from "./served-counts.ts";

/** A reply of three tokens, of which the first came after 400 ms and the last 200 ms later. */
function servedAfter(queueMs: number | null): Served {
  const timings = { prefillMs: 400, decodeMs: 200, tokensPerSecond: 10 };
  const reply = { ids: [1, 2, 3], finishReason: "length", timings } as unknown as Reply;
  return { reply, queueMs, firstTokenMs: 1500 };
}

function countsOf(...served: readonly Served[]): ServedCounts {
  const counts = new ServedCounts();
  const exchange = { route: null, status: 200, hungUp: false, streams: served, served };
  counts.add(exchange as unknown as Exchange, 1700);
  return counts;
}

/** How many values there were, and their sum. */
const told = (histogram: Histogram) =>
  ["_count", "_sum"].map(
    (name) => histogram.samples({}).find(({ suffix }) => suffix === name)!.value,
  );

test("a reply that waited for its slot", () => {
  const { queue, prefill, firstToken, decode, outputToken } = countsOf(servedAfter(300));
  expect(told(queue)).toEqual([1, 0.3]);
  expect(told(prefill)).toEqual([1, 0.1]);
  expect(told(firstToken)).toEqual([1, 1.5]);
  expect(told(decode)).toEqual([1, 0.2]);
  expect(told(outputToken)).toEqual([1, 0.1]);
});

test("where nobody knows how long it waited, that isn't counted as nothing", () => {
  const { queue, prefill, firstToken } = countsOf(servedAfter(null), servedAfter(0));
  expect(told(queue)).toEqual([1, 0]);
  expect(told(prefill)).toEqual([1, 0.4]);
  expect(told(firstToken)).toEqual([2, 3]);
});

import { expect, test } from "vitest";
import { fullReply } from "../conversation/conversation.cases.ts";
import { contextShare, detailsOf, endingNote, summaryOf } from "./figures.ts";

test("says what the server told, and nothing of what it didn't", () => {
  expect(summaryOf(fullReply.figures)).toEqual([
    "10.0 tok/s",
    "1.50 tokens a round",
    "25 % of drafts kept",
    "4 of 5 prompt tokens cached",
  ]);
  expect(summaryOf({ seed: 1 })).toEqual([]);
  expect(summaryOf({ drafted: 0, accepted: 0, promptTokens: 3 })).toEqual([]);
  expect(Object.fromEntries(detailsOf(fullReply.figures))).toEqual({
    Reply: "3 tokens",
    "Of it thinking": "1 tokens",
    Prompt: "5 tokens",
    "Of it cached": "4 tokens",
    "Not cached because": "the cache is off",
    "Until the first token": "2 ms",
    "From there to the end": "3 ms",
    Rounds: "2",
    "Drafts kept": "1 of 4",
    Seed: "7",
    Fingerprint: "0123456789ab",
  });
  expect(detailsOf({ seed: 4_000_000_000, cacheMissReason: "other" })).toEqual([
    ["Not cached because", "other"],
    ["Seed", "4000000000"],
  ]);
});

test("the context's share is known with all three figures", () => {
  expect(contextShare({ promptTokens: 10, replyTokens: 30 }, 80)).toBe(0.5);
  expect(contextShare({ promptTokens: 100, replyTokens: 30 }, 80)).toBe(1);
  expect(contextShare({ promptTokens: 10, replyTokens: 30 }, null)).toBeNull();
  expect(contextShare({ promptTokens: 10 }, 80)).toBeNull();
});

test("only replies that ended otherwise have a note", () => {
  expect(["stop", "tool_calls", "failed"].map((each) => endingNote(each as "stop"))).toEqual([
    ...[null, null, null],
  ]);
  expect(endingNote("length")).toContain("longest reply");
  expect(endingNote("stopped")).toBe("Stopped.");
});

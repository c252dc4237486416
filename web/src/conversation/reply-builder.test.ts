import { expect, test } from "vitest";
import type { Chunk, Delta } from "../api/chunk.ts";
import { reply } from "./conversation.cases.ts";
import { ReplyBuilder } from "./reply-builder.ts";

const begun = reply("r", "u", { text: "", ending: "stopped", figures: { seed: 7 } });
const piece = (delta: Delta): Chunk => ({ choices: [{ delta, finish_reason: null }] });

function built(...chunks: Chunk[]): ReplyBuilder {
  const builder = new ReplyBuilder(begun);
  for (const chunk of chunks) builder.push(chunk);
  return builder;
}

test("adds up reasoning, text, figures and the end", () => {
  const builder = built(
    piece({ content: "" }),
    piece({ reasoning_content: "Let me " }),
    piece({ reasoning_content: "see." }),
    piece({ content: "4" }),
    piece({ content: "2" }),
    {
      choices: [{ delta: {}, finish_reason: "length" }],
      timings: { prefill_ms: 12, decode_ms: 100, tokens_per_second: 40 },
      speculative: { rounds: 2, drafted: 6, accepted: 2, tokens_per_round: 2 },
      token_sha: "abc",
    },
    {
      choices: [],
      usage: {
        prompt_tokens: 9,
        completion_tokens: 5,
        prompt_tokens_details: { cached_tokens: 8 },
        completion_tokens_details: { reasoning_tokens: 3 },
      },
    },
  );
  expect(builder.pieces).toBe(4);
  expect(builder.reply).toEqual({
    ...begun,
    text: "42",
    reasoning: "Let me see.",
    ending: "length",
    figures: {
      seed: 7,
      prefillMs: 12,
      decodeMs: 100,
      tokensPerSecond: 40,
      rounds: 2,
      drafted: 6,
      accepted: 2,
      tokensPerRound: 2,
      tokenSha: "abc",
      promptTokens: 9,
      replyTokens: 5,
      cachedTokens: 8,
      reasoningTokens: 3,
    },
  });
});

test("joins the pieces of calls", () => {
  const call = (index: number, written: string, name?: string) =>
    piece({
      tool_calls: [
        {
          index,
          ...(name && { id: `id_${name}` }),
          function: { ...(name && { name }), arguments: written },
        },
      ],
    });
  const { reply: whole } = built(
    call(0, "", "first"),
    call(0, '{"a":'),
    call(0, "1}"),
    call(1, "{}", "second"),
    { choices: [{ delta: {}, finish_reason: "tool_calls" }] },
  );
  expect(whole.toolCalls).toEqual([
    { id: "id_first", name: "first", arguments: '{"a":1}' },
    { id: "id_second", name: "second", arguments: "{}" },
  ]);
  expect(whole.ending).toBe("tool_calls");
});

test("a reply without an end was stopped, and keeps what came", () => {
  const builder = built(piece({ content: "half" }));
  expect(builder.reply).toMatchObject({ text: "half", ending: "stopped", error: null });
  builder.fail("Gone.");
  expect(builder.reply).toMatchObject({ text: "half", ending: "failed", error: "Gone." });
});

test("what the server doesn't tell stays absent, and unknown endings are ends", () => {
  const { reply: whole } = built(
    { choices: [{ delta: { content: null }, finish_reason: "content_filter" }] },
    { usage: null, speculative: { tokens_per_round: null } },
    {},
  );
  expect(whole.ending).toBe("stop");
  expect(whole.figures).toEqual({ seed: 7 });
});

test("a reply that was given doesn't change", () => {
  const builder = built(piece({ content: "a" }));
  const before = builder.reply;
  builder.push(piece({ content: "b", tool_calls: [{ index: 0, id: "x" }] }));
  expect(before).toMatchObject({ text: "a", toolCalls: [] });
});

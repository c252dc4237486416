import { afterEach, describe, expect, it, vi } from "vitest";
import type { ReplyEvent } from "../../engine.ts";
import { InputError } from "../../errors.ts";
import type { Reply } from "../../stream.ts";
import { testIo } from "../io.cases.ts";
import { printReply, type ReplyParts, speedLine } from "./print-reply.ts";

const done: Reply = {
  ids: [1, 2, 3],
  events: [],
  text: "",
  reasoning: "",
  content: "",
  toolCalls: [],
  finishReason: "stop",
  stopSequence: null,
  reasoningTokens: 0,
  logprobs: null,
  promptLogprobs: null,
  promptTokens: 1,
  cachedTokens: 0,
  cacheMiss: "no_match",
  tokenSha: "",
  stateSha: null,
  timings: { prefillMs: 1, decodeMs: 10, tokensPerSecond: 199.6 },
  speculative: { rounds: 0, drafted: 0, accepted: 0, tokensPerRound: null, byDrafter: {} },
};

function parts(events: readonly ReplyEvent[]): ReplyParts {
  return {
    async *[Symbol.asyncIterator]() {
      yield* events;
    },
    result: Promise.resolve(done),
  };
}

async function printed(isTTY: boolean, events: readonly ReplyEvent[]): Promise<string> {
  const io = testIo(isTTY);
  await printReply(io, parts(events));
  return io.stdout.text;
}

const thought: ReplyEvent[] = [
  { type: "reasoning", text: "Hm" },
  { type: "reasoning", text: "…" },
  { type: "content", text: "Yes" },
  { type: "content", text: "." },
];

afterEach(() => vi.unstubAllEnvs());

describe("printReply", () => {
  it("dims each piece of reasoning on a terminal, and parts it from the answer", async () => {
    vi.stubEnv("FORCE_COLOR", "1");
    expect(await printed(true, thought)).toBe("\x1b[2mHm\x1b[22m\x1b[2m…\x1b[22m\n\nYes.\n");
  });

  it("prints the answer alone elsewhere", async () => {
    expect(await printed(false, thought)).toBe("Yes.\n");
  });

  it("adds no second line end, and none to nothing", async () => {
    expect(await printed(false, [{ type: "content", text: "Yes.\n" }])).toBe("Yes.\n");
    expect(await printed(false, [{ type: "reasoning", text: "Hm" }])).toBe("");
  });

  it("lets no control character through to a terminal", async () => {
    const events: ReplyEvent[] = [{ type: "content", text: "a\tb\n\x1b]0;title\x07\r\u009b" }];
    expect(await printed(true, events)).toBe("a\tb\n\ufffd]0;title\ufffd\ufffd\ufffd\n");
    expect(await printed(false, events)).toBe("a\tb\n\x1b]0;title\x07\r\u009b\n");
  });

  it("ends the line where a reply fails half-way", async () => {
    const io = testIo();
    const failing: ReplyParts = {
      async *[Symbol.asyncIterator]() {
        yield { type: "content", text: "Ye" } as const;
        throw new InputError("no more");
      },
      result: Promise.resolve(done),
    };
    await expect(printReply(io, failing)).rejects.toThrow("no more");
    expect(io.stdout.text).toBe("Ye\n");
  });
});

describe("speedLine", () => {
  it.each([
    [{}, "3 tokens, 200 tok/s\n"],
    [{ finishReason: "length" }, "3 tokens, 200 tok/s, cut at its longest\n"],
    [{ finishReason: "cancelled" }, "3 tokens, 200 tok/s, stopped\n"],
    [{ ids: [1], timings: { ...done.timings, tokensPerSecond: null } }, "1 token\n"],
  ] as const)("tells count and speed %#", (changes, line) => {
    expect(speedLine({ ...done, ...changes })).toBe(line);
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { TokenId } from "../ids.ts";
import type { ChatMessage } from "./chat-messages.ts";
import {
  forgetful,
  grouped,
  nano,
  oneTool,
  promptOf,
  said,
  source,
  strict,
  user,
} from "./prompt-marks.cases.ts";
import { nextTurnIds, type PromptMark, promptMarks } from "./prompt-marks.ts";

/** Texts of any kind, some of which begin so as to be drawn into the token before. */
const anyText = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc
    .tuple(fc.constantFrom("\n", "\n\n", " ", ":", "?", "a", "12", "<|im_end|>"), fc.string())
    .map((parts) => parts.join("")),
);

const anyCalls = fc.array(
  fc.record({ name: fc.constantFrom("far", "near"), to: anyText, result: anyText }),
  { minLength: 1, maxLength: 3 },
);

type Calls = readonly { name: string; to: string; result: string }[];

/** A reply, and what the client adds to the conversation after it. */
interface Step {
  readonly reply: Parameters<typeof nextTurnIds>[1];
  readonly messages: readonly ChatMessage[];
}

/** A reply that calls, which the client repeats with the results. */
function round(calls: Calls, content: string): Step {
  const toolCalls = calls.map(({ name, to }) => ({ name, arguments: JSON.stringify({ to }) }));
  const ids = calls.map((_, index) => `call_${content.length}${index}`);
  const repeated = toolCalls.map((fn, index) => ({ id: ids[index]!, function: fn }));
  const results = calls.map((each, index) => ({
    role: "tool",
    tool_call_id: ids[index]!,
    content: each.result,
  }));
  const messages = [{ role: "assistant", content, tool_calls: repeated }, ...results];
  return { reply: { content, toolCalls }, messages };
}

describe("any conversation resumes", () => {
  const anyTurn = fc.record({ ask: anyText, rounds: fc.array(anyCalls, { maxLength: 2 }) });

  test.each<[string, string, tools: boolean]>([
    ["nano", nano, true],
    ["forgetful", forgetful, true],
    ["grouped", grouped, true],
    ["strict", strict, false],
  ])("%s", (_, template, withTools) => {
    const begins = (messages: readonly ChatMessage[], ids: readonly TokenId[] | undefined) => {
      expect(ids).toBeDefined();
      const tools = withTools ? oneTool : null;
      const prompt = promptOf(source(template, messages, tools));
      expect(prompt.slice(0, ids!.length)).toEqual(ids);
    };
    /** A prompt's marks, and what follows: the reply and the next message, or the results. */
    const check = (
      asked: readonly ChatMessage[],
      { reply, messages: next }: Step,
      other: string,
    ) => {
      const conversation = source(template, asked, withTools ? oneTool : null);
      const ids = promptOf(conversation);
      const marks = promptMarks(conversation, ids);
      const at = (kind: PromptMark["kind"]) =>
        marks.filter((mark) => mark.kind === kind).map(({ rows }) => ids.slice(0, rows));
      // The last history is for the next call; the user's next message may resume at the first.
      const history = at("history");
      begins([...asked, ...next], reply.toolCalls.length > 0 ? history.at(-1) : history[0]);
      begins([...asked, ...next], nextTurnIds(conversation, reply) ?? undefined);
      const latest = asked.findLastIndex(({ role }) => role === "user");
      // A first message is edited where conversations part anyway.
      const edited = at("rewind")[0] ?? at("shared").at(-1);
      begins([...asked.slice(0, latest), user(other)], edited);
      const start = asked.filter(({ role }) => role === "system");
      for (const shared of at("shared")) begins([...start, user(other)], shared);
    };
    const property = fc.property(
      fc.option(anyText),
      fc.array(anyTurn, { minLength: 1, maxLength: 3 }),
      anyText,
      (instruction, turns, other) => {
        const messages: ChatMessage[] = [];
        if (withTools && instruction) messages.push({ role: "system", content: instruction });
        for (const { ask, rounds } of turns) {
          messages.push(user(ask));
          for (const calls of withTools ? rounds : []) {
            const step = round(calls, other);
            check(messages, step, ask);
            messages.push(...step.messages);
          }
          const reply = { content: ask + other, toolCalls: [] };
          check(messages, { reply, messages: [said(reply.content), user(other)] }, other);
          messages.push(said(reply.content));
        }
      },
    );
    fc.assert(property, { numRuns: 40 });
  });
});

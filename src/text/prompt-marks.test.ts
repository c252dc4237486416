import { describe, expect, test } from "vitest";
import { InvariantError } from "../errors.ts";
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
  tokenizer,
  user,
} from "./prompt-marks.cases.ts";
import { nextTurnIds, type PromptSource, promptMarks } from "./prompt-marks.ts";

/** The prompt's text with the marks in it. */
function marked(conversation: PromptSource): string {
  const ids = promptOf(conversation);
  let text = "";
  let from = 0;
  for (const { rows, kind } of promptMarks(conversation, ids)) {
    text += `${tokenizer.decode(ids.slice(from, rows))}[${kind}]`;
    from = rows;
  }
  return text + tokenizer.decode(ids.slice(from));
}

function afterReply(conversation: PromptSource, reply: Parameters<typeof nextTurnIds>[1]) {
  const ids = nextTurnIds(conversation, reply);
  return ids && tokenizer.decode(ids);
}

const system = { role: "system", content: "You help to plan long journeys by train and by ship." };
const written = '{"to":"Lima"}';
const call = { id: "call_1", type: "function", function: { name: "far", arguments: written } };
const called = {
  role: "assistant",
  content: "",
  reasoning_content: "I look.",
  tool_calls: [call],
};
const result = { role: "tool", tool_call_id: "call_1", content: "9000 km" };

describe("where the marks are", () => {
  const opening =
    "<|im_start|>system\nYou help to plan long journeys by train and by ship.<|im_end|>\n";

  test("nano's history ends where the reply's reasoning would begin", () => {
    const messages = [system, user("Hi"), said("Hello."), user("How far is Lima?")];
    expect(marked(source(nano, messages))).toBe(
      `${opening}<|im_start|>user\n[shared]Hi<|im_end|>\n` +
        "<|im_start|>assistant\n<think>\n\n</think>\n\nHello.<|im_end|>\n" +
        "<|im_start|>user\n[rewind]How far is Lima?<|im_end|>\n" +
        "<|im_start|>assistant\n<think>[history]\n",
    );
  });

  test("without reasoning, nano's history is the whole prompt", () => {
    const conversation = source(nano, [user("Hi")], null, { enable_thinking: false });
    const ids = promptOf(conversation);
    expect(promptMarks(conversation, ids)).toEqual([
      { rows: 3, kind: "rewind" },
      { rows: ids.length, kind: "history" },
    ]);
  });

  test("where the first turn is edited is what conversations share, and marked so", () => {
    expect(marked(source(nano, [system, user("Hi")]))).toBe(
      `${opening}<|im_start|>user\n[shared]Hi<|im_end|>\n<|im_start|>assistant\n<think>[history]\n`,
    );
  });

  test("a developer's message and tools are shared; a few words of the template aren't worth it", () => {
    const turns = [user("Hi"), said("Yes?"), user("No")];
    const developer = { role: "developer", content: system.content };
    const start = `${opening}<|im_start|>user\n[shared]Hi`;
    expect(marked(source(nano, [developer, ...turns]))).toContain(start);
    expect(marked(source(nano, turns, oneTool))).toContain("<|im_start|>user\n[shared]Hi");
    expect(marked(source(nano, turns))).not.toContain("[shared]");
  });

  test("between calls, a template that will drop the reasoning has two histories", () => {
    const messages = [system, user("How far?"), called, result];
    expect(marked(source(forgetful, messages))).toBe(
      `${opening}<|im_start|>user[shared]\nHow far?<|im_end|>\n<|im_start|>assistant\n[history]` +
        "<think>\nI look.\n</think>\n\n" +
        `<tool_call>\n{"name": "far", "arguments": {"to": "Lima"}}\n</tool_call><|im_end|>\n` +
        "<|im_start|>tool\n9000 km<|im_end|>\n<|im_start|>assistant\n<think>[history]\n",
    );
    expect(marked(source(forgetful, [...messages, said("Far."), user("Thanks")]))).toMatch(
      /<\|im_start\|>assistant\[history\]\n<think>\n$/,
    );
  });

  test("no token that may swallow what follows is before a mark", () => {
    expect(marked(source(strict, [user("How far is Lima? It is "), said("far"), user("?!")]))).toBe(
      "user: How far is Lima? It is \nassistant: far\nuser:[rewind] ?!\nassistant:[history]",
    );
  });

  test("only system messages: nothing to rewind", () => {
    expect(marked(source(nano, [system]))).toBe(
      `${opening}<|im_start|>[shared]assistant\n<think>[history]\n`,
    );
  });
});

describe("refusals", () => {
  test("a template that refuses the probes of a mark leaves it out", () => {
    const conversation = source(strict, [user("Hi"), said("Hello."), user("How far is Lima?")]);
    const ids = promptOf(conversation);
    const kinds = (refused: number) => {
      const render = (messages: readonly ChatMessage[]) =>
        conversation.render(messages.length === refused ? [said("I begin.")] : messages);
      return promptMarks({ ...conversation, render }, ids).map(({ kind }) => kind);
    };
    expect(kinds(0)).toEqual(["rewind", "history"]);
    expect(kinds(3)).toEqual(["history"]);
    expect(kinds(5)).toEqual(["rewind"]);
  });

  test("calls where there are none, and arguments that can't be read", () => {
    const toolCalls = [{ name: "far", arguments: "{}" }];
    expect(afterReply(source(strict, [user("Hi")]), { content: "", toolCalls })).toBeNull();
    const bad = [{ name: "far", arguments: "{" }];
    expect(afterReply(source(nano, [user("Hi")]), { content: "", toolCalls: bad })).toBeNull();
  });

  test("a bug is not taken for a refusal", () => {
    const render = () => {
      throw new InvariantError("broken");
    };
    const broken = { ...source(nano, [user("Hi")]), render };
    expect(() => promptMarks(broken, [1, 2])).toThrow(InvariantError);
    expect(() => nextTurnIds(broken, { content: "x", toolCalls: [] })).toThrow(InvariantError);
  });
});

describe("what every turn after a reply repeats", () => {
  const messages = [user("How far?")];

  test("up to the user's next text", () => {
    const reply = { content: "Far.", toolCalls: [] };
    expect(afterReply(source(forgetful, messages), reply)).toBe(
      "<|im_start|>user\nHow far?<|im_end|>\n<|im_start|>assistant\nFar.<|im_end|>\n<|im_start|>user",
    );
  });

  test("up to the first call's result", () => {
    const toolCalls = [call.function, call.function];
    const words = '<tool_call>\n{"name": "far", "arguments": {"to": "Lima"}}\n</tool_call>';
    expect(afterReply(source(forgetful, messages), { content: "", toolCalls })).toBe(
      "<|im_start|>user\nHow far?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n" +
        `${words}${words}<|im_end|>\n<|im_start|>tool`,
    );
  });

  test("not a call's id, which the client will make up", () => {
    expect(
      afterReply(source(grouped, messages), { content: "", toolCalls: [call.function] }),
    ).toMatch(/assistant\n\nfar\{"to": "Lima"\}$/);
  });
});

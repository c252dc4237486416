import { expect, test } from "vitest";
import { Conversation } from "./conversation.ts";
import { ChatTemplate } from "./text/chat-template.ts";
import { nano, said, tokenizer, user } from "./text/prompt-marks.cases.ts";

const template = ChatTemplate.fromSource(nano, "nano");

test("no state is kept at a prompt's very end: a prompt that comes again goes on from before it", () => {
  const messages = [user("Hi"), said("Hello."), user("How far is Lima?")];
  for (const thinking of [true, false]) {
    const options = {
      tools: null,
      addGenerationPrompt: true,
      kwargs: { enable_thinking: thinking },
    };
    const { marks, promptIds } = new Conversation(
      (each) => template.render(each, options),
      tokenizer,
      messages,
    );
    expect(marks.at(-1)).toEqual({ rows: promptIds.length - 1, kind: "history" });
  }
});

import { expect, it } from "vitest";
import type { Reply } from "../../stream.ts";
import { Conversation } from "./conversation.ts";

const said = (content: string, reasoning: string): Reply => ({ content, reasoning }) as Reply;

it("goes on with what was said, reasoning included", () => {
  const conversation = new Conversation("Be brief.");
  conversation.add("Hi", said("Hello.", "A greeting."));
  expect(conversation.asked("And?")).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello.", reasoning_content: "A greeting." },
    { role: "user", content: "And?" },
  ]);
});

it("leaves a turn without a reply out", () => {
  const conversation = new Conversation(null);
  conversation.add("Hi", said("", ""));
  expect(conversation.asked("And?")).toEqual([{ role: "user", content: "And?" }]);
});

it("starts over", () => {
  const conversation = new Conversation("Be brief.");
  conversation.add("Hi", said("Hello.", ""));
  conversation.reset();
  expect(conversation.asked("And?")).toHaveLength(2);
  conversation.add("Hi", said("Hello.", ""));
  conversation.setSystem(null);
  expect(conversation.asked("And?")).toEqual([{ role: "user", content: "And?" }]);
});

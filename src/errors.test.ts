import { expect, test } from "vitest";
import { ContextLengthError } from "./errors.ts";

const limit = "This model's maximum context length is 512 tokens. However, ";

test("a context error speaks of the reply only where its length was asked for", () => {
  const asked = new ContextLengthError(512, 500, 13, "prompt");
  expect(asked.message).toBe(
    `${limit}you requested 513 tokens (500 in the prompt, 13 for the reply). ` +
      "Please reduce the length of the prompt or the reply.",
  );
  expect(asked).toMatchObject({ code: "context_length_exceeded", status: 400, param: "prompt" });
  const messages = new ContextLengthError(512, 600, null);
  expect(messages.message).toBe(
    `${limit}your messages resulted in 600 tokens. Please reduce the length of the messages.`,
  );
  expect(messages.param).toBe("messages");
  expect(new ContextLengthError(512, 600, null, "prompt").message).toContain(
    "your prompt resulted",
  );
});

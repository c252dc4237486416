import { expect, test } from "vitest";
import { ContextLengthError, DeltafoldError, InputError } from "../errors.ts";
import { isMessagesPath, messagesErrorBody } from "./messages-error.ts";

test.each([
  [400, "invalid_request_error"],
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [405, "invalid_request_error"],
  [408, "invalid_request_error"],
  [413, "request_too_large"],
  [415, "invalid_request_error"],
  [429, "rate_limit_error"],
  [500, "api_error"],
  [503, "overloaded_error"],
])("status %i is a %s", (status, type) => {
  const error = new DeltafoldError("its_code", "What went wrong.", { status });
  expect(messagesErrorBody(error)).toEqual({
    type: "error",
    error: { type, message: "What went wrong.", details: { error_code: "its_code" } },
  });
});

test.each([
  ["seed", "seed must be a number.", "seed must be a number."],
  ["output_config.format", "It has no end.", "output_config.format: It has no end."],
])("an error of %s says so in its words: %j", (param, said, message) => {
  expect(messagesErrorBody(new InputError(said, param))).toMatchObject({ error: { message } });
});

test("which paths are Anthropic's", () => {
  const theirs = ["/v1/messages", "/messages", "/v1/messages/count_tokens", "/messages/batches"];
  for (const path of theirs) expect(isMessagesPath(path)).toBe(true);
  const others = ["", "/", "/v1/models", "/v1/chat/messages", "/v1/messagesx", "/v2/messages"];
  for (const path of others) expect(isMessagesPath(path)).toBe(false);
});

test.each([
  [null, 500, "prompt is too long: 500 tokens > 400 maximum"],
  [20, 400, "prompt is too long: 400 tokens > 400 maximum"],
  [
    20,
    390,
    "input length and `max_tokens` exceed context limit: 390 + 20 > 400, " +
      "decrease input length or `max_tokens` and try again",
  ],
])("a reply of %s behind %i tokens, where 400 fit", (replyTokens, promptTokens, message) => {
  const error = new ContextLengthError(400, promptTokens, replyTokens);
  expect(messagesErrorBody(error)).toMatchObject({
    error: { type: "invalid_request_error", message, details: { error_code: error.code } },
  });
});

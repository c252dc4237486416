import { expect, test } from "vitest";
import { parseChat } from "./chat-request.ts";
import { parseCompletion } from "./completion-request.ts";
import { hello } from "./http.cases.ts";

const sampling = {
  temperature: 0.5,
  top_p: 0.8,
  top_k: 7,
  min_p: 0.1,
  repetition_penalty: 1.1,
  presence_penalty: 0.2,
  frequency_penalty: -0.3,
  logit_bias: { 42: 5, 7: -100 },
  seed: 9,
};

test("every sampling field reaches the engine as it came", () => {
  expect(parseChat({ messages: hello, ...sampling }).request).toMatchObject(sampling);
  expect(parseCompletion({ prompt: "a", ...sampling }).request).toMatchObject(sampling);
});

test.each([
  [{ n_predict: 5 }, 5],
  [{ max_tokens: 6, n_predict: 5 }, 6],
  [{ max_completion_tokens: 7, max_tokens: 6, n_predict: 5 }, 7],
  [{ max_tokens: null, n_predict: null }, null],
])("%j asks for at most %j tokens", (fields, maxTokens) => {
  expect(parseChat({ messages: hello, ...fields }).request).toMatchObject({ maxTokens });
  expect(parseCompletion({ prompt: "a", ...fields }).request).toMatchObject({ maxTokens });
});

test("a thinking budget has two names", () => {
  for (const name of ["thinking_budget", "thinking_token_budget"]) {
    const { request } = parseChat({ messages: hello, [name]: 9 });
    expect(request.thinkingBudget).toBe(9);
  }
});

test.each([
  [{}, true],
  [{ draft: null }, true],
  [{ draft: true }, true],
  [{ draft: false }, false],
])("%j asks for drafts: %s", (fields, draft) => {
  expect(parseChat({ messages: hello, ...fields }).request).toMatchObject({ draft });
  expect(parseCompletion({ prompt: "a", ...fields }).request).toMatchObject({ draft });
});

test.each([
  [{}, { priority: "foreground", cachePrompt: true }],
  [
    { priority: null, cache_prompt: null },
    { priority: "foreground", cachePrompt: true },
  ],
  [{ priority: "background" }, { priority: "background" }],
  [{ priority: "foreground" }, { priority: "foreground" }],
  [{ cache_prompt: false }, { cachePrompt: false }],
  [{ cache_prompt: true }, { cachePrompt: true }],
])("%j asks for %j", (fields, request) => {
  expect(parseChat({ messages: hello, ...fields }).request).toMatchObject(request);
  expect(parseCompletion({ prompt: "a", ...fields }).request).toMatchObject(request);
});

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

const budgets = ["thinking_budget", "thinking_token_budget"];
const llamaBudgets = ["thinking_budget_tokens", "reasoning_budget_tokens"];

test.each([...budgets, ...llamaBudgets])("%s is a thinking budget", (name) => {
  for (const budget of [0, 9]) {
    const { request } = parseChat({ messages: hello, [name]: budget });
    expect(request.thinkingBudget).toBe(budget);
  }
  expect(() => parseChat({ messages: hello, [name]: -2 })).toThrow(
    `${name} must be a whole number`,
  );
});

test.each(llamaBudgets)("%s of -1 is none", (name) => {
  expect(parseChat({ messages: hello, [name]: -1 }).request.thinkingBudget).toBeNull();
});

test("what was thought has two names", () => {
  const said = { role: "assistant", content: "Hi" };
  const read = (fields: object) => parseChat({ messages: [{ ...said, ...fields }] });
  for (const fields of [
    { reasoning_content: "a" },
    { reasoning: "a" },
    { reasoning_content: "a", reasoning: "b" },
  ]) {
    expect(read(fields).request.messages[0]!.reasoning_content).toBe("a");
  }
  expect(() => read({ reasoning: 5 })).toThrow("messages[0].reasoning must be a string, not 5.");
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

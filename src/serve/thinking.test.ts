import { afterAll, expect, test } from "vitest";
import { endServers, testServer, tokenizer } from "./engine.cases.ts";
import { chatPath, eventsOf, expectError, hello, joined, replyTo } from "./http.cases.ts";

const random = testServer();
afterAll(() => endServers(random));

const closing = tokenizer.encode("\n</think>\n\n");
const body = { messages: hello, max_tokens: 60, ignore_eos: true, seed: 5 };
const asRequest = {
  messages: [{ role: "user", content: "Hello" }],
  maxTokens: 60,
  ignoreEos: true,
  seed: 5,
};

test("a budget ends the think block behind its tokens, and the reply goes on", async () => {
  const free = await random.engine.chat(asRequest).result;
  for (const budget of [0, 1, 7, 30]) {
    const stream = random.engine.chat({ ...asRequest, thinkingBudget: budget });
    const { ids, reasoningTokens } = await stream.result;
    expect(ids.slice(0, budget)).toEqual(free.ids.slice(0, budget));
    expect(ids.slice(budget, budget + closing.length)).toEqual(closing);
    expect(ids).toHaveLength(60);
    // The closing tag's token is the block's last.
    expect(reasoningTokens).toBe(budget + closing.indexOf(tokenizer.idOf("</think>")!) + 1);
  }
});

test("whole and streamed replies of a budget are one", async () => {
  const asked = { ...body, thinking_budget: 9 };
  const whole = await replyTo(random.app, chatPath, asked);
  const { message } = whole.choices[0]!;
  const events = await eventsOf(random.app, chatPath, asked);
  const { content, reasoning } = joined(events);
  expect(message).toMatchObject({ content, reasoning_content: reasoning });
  expect(events.at(-1)!.token_sha).toBe(whole.token_sha);
  expect(whole.usage!.completion_tokens_details.reasoning_tokens).toBeGreaterThan(9);
});

test("a budget is nothing to a reply without a think block", async () => {
  const off = { ...body, chat_template_kwargs: { enable_thinking: false } };
  const plain = await replyTo(random.app, chatPath, off);
  const asked = await replyTo(random.app, chatPath, { ...off, thinking_budget: 3 });
  expect(asked.token_sha).toBe(plain.token_sha);
});

test("efforts and switches reach the template", async () => {
  const tokens = async (fields: object) => {
    const reply = await replyTo(random.app, chatPath, { ...body, max_tokens: 1, ...fields });
    return reply.usage!.prompt_tokens;
  };
  const [on, off] = [await tokens({}), await tokens({ reasoning_effort: "none" })];
  expect(off).toBeGreaterThan(on);
  expect(await tokens({ chat_template_kwargs: { enable_thinking: false } })).toBe(off);
  expect(await tokens({ chat_template_kwargs: { thinking: false } })).toBe(off);
  for (const effort of ["minimal", "low", "medium", "high", "xhigh", "max", null]) {
    expect(await tokens({ reasoning_effort: effort })).toBe(on);
  }
  // What a request says of the template itself counts more.
  const kwargs = { chat_template_kwargs: { enable_thinking: true } };
  expect(await tokens({ reasoning_effort: "none", ...kwargs })).toBe(on);
});

test.each([
  [{ thinking_budget: -1 }, "thinking_budget", "at least 0, not -1"],
  [{ thinking_budget: 1.5 }, "thinking_budget", "not 1.5"],
  [{ thinking_budget: "9" }, "thinking_budget", 'not "9"'],
  [{ reasoning_effort: "huge" }, "reasoning_effort", "one of none, minimal"],
  [{ reasoning_effort: 3 }, "reasoning_effort", "not 3"],
])("%j is refused", async (fields, param, words) => {
  const expected = { code: "invalid_type", param, words };
  await expectError(random.app, chatPath, { ...body, ...fields }, 400, expected);
});

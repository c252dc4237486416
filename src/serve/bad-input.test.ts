import { afterAll, expect, test } from "vitest";
import { jsonDepthMax, messagesMax } from "../limits.ts";
import { createApp } from "./app.ts";
import { testServer } from "./engine.cases.ts";
import { chatPath, expectError, hello, post, replyTo, textPath } from "./http.cases.ts";

const server = testServer({ contextTokens: 512 });
const { app, engine, backend, reported } = server;
afterAll(async () => {
  await engine[Symbol.asyncDispose]();
  expect(backend.openSlots.size).toBe(0);
  expect(reported).toEqual([]);
});

const goodTool = { type: "function", function: { name: "f" } };
const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const chat = (fields: object) => ({ messages: hello, max_tokens: 1, ...fields });
const user = (fields: object) =>
  chat({ messages: [{ role: "user", content: "Hello", ...fields }] });

type Row = [what: string, body: object | string, code: string, param: string | null, words: string];

const chatRows: Row[] = [
  ["nothing", "", "invalid_json", null, "not valid JSON"],
  ["malformed JSON", '{"messages": [', "invalid_json", null, "not valid JSON"],
  ["NaN", '{"messages": [], "temperature": NaN}', "invalid_json", null, "not valid JSON"],
  ["a list", "[]", "invalid_type", null, "must be a JSON object"],
  ["null", "null", "invalid_type", null, "must be a JSON object"],
  ["deep JSON", `{"x": ${nested(jsonDepthMax)}}`, "too_deep", null, `${jsonDepthMax} levels`],
  [
    "brackets in a text",
    `{"x": "${'\\\\\\"['.repeat(99)}"}`,
    "missing_field",
    "messages",
    "missing",
  ],
  ["very deep JSON", `{"x": ${nested(1e6)}}`, "too_deep", null, "nested deeper"],
  ["no messages", {}, "missing_field", "messages", "messages is missing: it must be a list."],
  ["null messages", { messages: null }, "invalid_type", "messages", "a list, not null."],
  ["text as messages", { messages: "a" }, "invalid_type", "messages", 'a list, not "a".'],
  ["empty messages", { messages: [] }, "invalid_value", "messages", "must not be empty"],
  ["a text in messages", { messages: ["a"] }, "invalid_type", "messages[0]", 'an object, not "a".'],
  ["no role", { messages: [{}] }, "missing_field", "messages[0].role", "role is missing"],
  ["unknown role", user({ role: "wizard" }), "invalid_value", "messages[0].role", 'not "wizard".'],
  ["a number as role", user({ role: 5 }), "invalid_type", "messages[0].role", "not 5."],
  ["a number as content", user({ content: 5 }), "invalid_type", "messages[0].content", "or null"],
  [
    "an image",
    user({ content: [{ type: "image_url" }] }),
    "invalid_value",
    "messages[0].content[0]",
    'not one of type "image_url".',
  ],
  ["an empty part", user({ content: [5] }), "invalid_value", "messages[0].content[0]", "not 5."],
  [
    "a part without text",
    user({ content: [{ type: "text" }] }),
    "invalid_value",
    "messages[0].content[0].text",
    "must be a string",
  ],
  ["no content", user({ content: undefined }), "invalid_value", "messages[0].content", "missing"],
  ["null content", user({ content: null }), "invalid_value", "messages[0].content", "missing"],
  ["a number as name", user({ name: 1 }), "invalid_type", "messages[0].name", "a string"],
  ["text as calls", user({ tool_calls: "x" }), "invalid_type", "messages[0].tool_calls", "a list"],
  [
    "an empty call",
    user({ tool_calls: [{}] }),
    "invalid_value",
    "messages[0].tool_calls[0]",
    "an object with a function",
  ],
  [
    "a late system message",
    chat({ messages: [...hello, { role: "system", content: "x" }] }),
    "invalid_value",
    "messages",
    "A system message must come first.",
  ],
  [
    "too many messages",
    { messages: Array(messagesMax + 1).fill(hello[0]) },
    "too_many",
    "messages",
    "4096",
  ],
  ["text as max_tokens", chat({ max_tokens: "9" }), "invalid_type", "max_tokens", 'not "9".'],
  ["max_tokens 0", chat({ max_tokens: 0 }), "invalid_type", "max_tokens", "over 0"],
  ["max_tokens 1.5", chat({ max_tokens: 1.5 }), "invalid_type", "max_tokens", "not 1.5."],
  [
    "endless max_tokens",
    '{"messages": [], "max_tokens": 1e999}',
    "invalid_type",
    "max_tokens",
    "Infinity",
  ],
  [
    "max_completion_tokens -1",
    chat({ max_completion_tokens: -1 }),
    "invalid_type",
    "max_completion_tokens",
    "over 0",
  ],
  ["temperature -1", chat({ temperature: -1 }), "invalid_value", "temperature", "at least 0"],
  ["temperature true", chat({ temperature: true }), "invalid_value", "temperature", "true"],
  ["top_p 0", chat({ top_p: 0 }), "invalid_value", "top_p", "over 0"],
  ["top_p 2", chat({ top_p: 2 }), "invalid_value", "top_p", "at most 1"],
  ["top_k 1.5", chat({ top_k: 1.5 }), "invalid_value", "top_k", "whole number"],
  ["min_p text", chat({ min_p: "0" }), "invalid_value", "min_p", "finite number"],
  [
    "repetition_penalty 0",
    chat({ repetition_penalty: 0 }),
    "invalid_value",
    "repetition_penalty",
    "over 0",
  ],
  ["presence_penalty 3", chat({ presence_penalty: 3 }), "invalid_value", "presence_penalty", "2"],
  [
    "frequency_penalty text",
    chat({ frequency_penalty: "1" }),
    "invalid_value",
    "frequency_penalty",
    "a finite number",
  ],
  ["a list as logit_bias", chat({ logit_bias: [] }), "invalid_value", "logit_bias", "an object"],
  [
    "a text in logit_bias",
    chat({ logit_bias: { a: 1 } }),
    "invalid_value",
    "logit_bias",
    'not "a".',
  ],
  [
    "a bias of 101",
    chat({ logit_bias: { 5: 101 } }),
    "invalid_value",
    "logit_bias",
    "-100 and 100, not 101.",
  ],
  [
    "a bias past the vocabulary",
    chat({ logit_bias: { 8192: 0 } }),
    "invalid_value",
    "logit_bias",
    "Token id 8192 is not in the vocabulary of 8192",
  ],
  ["seed 0.5", chat({ seed: 0.5 }), "invalid_value", "seed", "whole number"],
  ["stop 5", chat({ stop: 5 }), "invalid_type", "stop", "a string or a list of strings"],
  ["an empty stop", chat({ stop: "" }), "invalid_value", "stop", "must not be empty"],
  ["a number in stop", chat({ stop: ["a", 5] }), "invalid_type", "stop", "a list of strings"],
  ["17 stops", chat({ stop: Array(17).fill("a") }), "invalid_value", "stop", "At most 16"],
  ["a long stop", chat({ stop: "a".repeat(257) }), "invalid_value", "stop", "256 bytes"],
  ["ignore_eos 1", chat({ ignore_eos: 1 }), "invalid_type", "ignore_eos", "true or false"],
  ["stream text", chat({ stream: "yes" }), "invalid_type", "stream", 'not "yes".'],
  [
    "stream_options list",
    chat({ stream_options: [] }),
    "invalid_type",
    "stream_options",
    "not [].",
  ],
  [
    "include_usage 1",
    chat({ stream_options: { include_usage: 1 } }),
    "invalid_type",
    "stream_options.include_usage",
    "true or false",
  ],
  ["draft 0", chat({ draft: 0 }), "invalid_type", "draft", "true or false"],
  [
    "cache_prompt text",
    chat({ cache_prompt: "no" }),
    "invalid_type",
    "cache_prompt",
    'true or false, not "no".',
  ],
  [
    "another priority",
    chat({ priority: "high" }),
    "invalid_type",
    "priority",
    'must be "foreground" or "background", not "high".',
  ],
  ["a number as priority", chat({ priority: 0 }), "invalid_type", "priority", "not 0."],
  ["tools object", chat({ tools: {} }), "invalid_type", "tools", "a list"],
  ["a tool of text", chat({ tools: [goodTool, "a"] }), "invalid_type", "tools[1]", "a tool"],
  [
    "a tool of type x",
    chat({ tools: [{ type: "x" }] }),
    "invalid_type",
    "tools[0].type",
    "function",
  ],
  [
    "a tool without a function",
    chat({ tools: [{ type: "function" }] }),
    "missing_field",
    "tools[0].function",
    "an object with a name",
  ],
  [
    "a nameless tool",
    chat({ tools: [{ type: "function", function: { name: "" } }] }),
    "invalid_type",
    "tools[0].function.name",
    "a name",
  ],
  [
    "a list as parameters",
    chat({ tools: [{ type: "function", function: { name: "f", parameters: [] } }] }),
    "invalid_type",
    "tools[0].function.parameters",
    "an object, not [].",
  ],
  [
    "kwargs text",
    chat({ chat_template_kwargs: "x" }),
    "invalid_type",
    "chat_template_kwargs",
    "an object",
  ],
];

test.each(chatRows)("chat: %s", async (_, body, code, param, words) => {
  await expectError(app, chatPath, body, 400, { code, param, words });
});

const completionRows: Row[] = [
  ["no prompt", {}, "missing_field", "prompt", "prompt is missing"],
  ["null", { prompt: null }, "invalid_type", "prompt", "not null"],
  ["a number", { prompt: 5 }, "invalid_type", "prompt", "not 5."],
  ["empty text", { prompt: "" }, "invalid_value", "prompt", "must not be empty"],
  ["no ids", { prompt: [] }, "invalid_value", "prompt", "must not be empty"],
  ["texts", { prompt: ["a", "b"] }, "invalid_type", "prompt", "one prompt at a time"],
  ["lists", { prompt: [[1], [2]] }, "invalid_type", "prompt", "one prompt at a time"],
  ["a mixed list", { prompt: [1, "a"] }, "invalid_type", "prompt", "one prompt at a time"],
  ["an id below 0", { prompt: [1, -1] }, "invalid_value", "prompt", "Token id -1"],
  ["an id past the end", { prompt: [8192] }, "invalid_value", "prompt", "vocabulary of 8192"],
  ["half an id", { prompt: [0.5] }, "invalid_value", "prompt", "Token id 0.5"],
  ["endless id", '{"prompt": [1e999]}', "invalid_value", "prompt", "Token id Infinity"],
  [
    "a bias past the vocabulary",
    { prompt: "a", logit_bias: { 1e9: 1 } },
    "invalid_value",
    "logit_bias",
    "Token id 1000000000",
  ],
  ["stop 5", { prompt: "a", stop: 5 }, "invalid_type", "stop", "a string or a list"],
  ["priority 1", { prompt: "a", priority: 1 }, "invalid_type", "priority", "not 1."],
  ["cache_prompt 1", { prompt: "a", cache_prompt: 1 }, "invalid_type", "cache_prompt", "true"],
];

test.each(completionRows)("completion: %s", async (_, body, code, param, words) => {
  await expectError(app, textPath, body, 400, { code, param, words });
});

const unsupported: [field: string, value: unknown][] = [
  ["n", 2],
  ["n", "1"],
  ["best_of", 2],
  ["echo", true],
  ["suffix", "x"],
  ["modalities", ["text", "audio"]],
  ["response_format", { type: "json_object" }],
  ["response_format", { type: "json_schema", json_schema: {} }],
  ["logprobs", true],
  ["logprobs", 0],
  ["top_logprobs", 5],
  ["guided_json", {}],
  ["guided_regex", "a+"],
  ["guided_made_up", false],
  ["structured_outputs", { json: {} }],
  ["reasoning_effort", "low"],
  ["thinking_budget", 5],
  ["parallel_tool_calls", false],
  ["tool_choice", "required"],
  ["tool_choice", { type: "function", function: { name: "f" } }],
  ["functions", [{ name: "f" }]],
];

test.each(unsupported)("not honoured, so refused: %s %j", async (field, value) => {
  const words = `${field} is not supported yet`;
  const expected = { code: "unsupported_parameter", param: field, words };
  await expectError(app, chatPath, chat({ [field]: value }), 400, expected);
  await expectError(app, textPath, { prompt: "a", [field]: value }, 400, expected);
});

test("a prompt and reply over the context name both numbers", async () => {
  const code = "context_length_exceeded";
  const fits = { prompt: Array(511).fill(1) };
  const most = await replyTo(app, textPath, { ...fits, max_tokens: 1 });
  expect(most.usage!.completion_tokens).toBe(1);
  for (const body of [
    { ...fits, max_tokens: 2 },
    { prompt: Array(512).fill(1) },
    { prompt: Array(5120).fill(1) },
  ]) {
    const tokens = body.prompt.length;
    const found =
      "max_tokens" in body
        ? `you requested ${tokens + 2} tokens`
        : `your prompt resulted in ${tokens} tokens`;
    const words = `maximum context length is 512 tokens. However, ${found}`;
    await expectError(app, textPath, body, 400, { code, param: "prompt", words });
    const streamed = { ...body, stream: true };
    await expectError(app, textPath, streamed, 400, { code, param: "prompt", words });
  }
  const long = [{ role: "user", content: "word ".repeat(600) }];
  const expected = { code, param: "messages", words: "maximum context length is 512 tokens" };
  await expectError(app, chatPath, { messages: long, stream: true }, 400, expected);
});

test("a request that the memory of all streams can't hold names both numbers", async () => {
  await using small = testServer({ pages: 2 }).engine;
  const body = { prompt: Array(100).fill(1), max_tokens: 29 };
  const words = "room for 129 tokens of prompt and reply; there is room for 128.";
  const expected = { code: "request_too_large", param: null, words };
  const smallApp = createApp({ engine: small });
  await expectError(smallApp, textPath, body, 400, expected);
  await expectError(smallApp, textPath, { ...body, stream: true }, 400, expected);
  const fits = await replyTo(smallApp, textPath, { ...body, max_tokens: 28, ignore_eos: true });
  expect(fits.usage!.completion_tokens).toBe(28);
});

test("a model without a template completes, but doesn't chat", async () => {
  await using bare = testServer({ chat: false }).engine;
  const response = await post(createApp({ engine: bare }), chatPath, chat({}));
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("has no chat template");
});

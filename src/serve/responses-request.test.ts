import { expect, test } from "vitest";
import type { ResponseItem } from "./responses-items.ts";
import { parseResponse } from "./responses-request.ts";

const noHistory = () => {
  throw new Error("nothing is asked for");
};
const parse = (body: object) => parseResponse({ input: "Hello", ...body }, noHistory);
const city = { type: "object", properties: { city: { type: "string" } } };
const tools = ["weather", "time"].map((name) => ({ type: "function", name, parameters: city }));

test("a text is a user's message, behind the instructions", () => {
  expect(parse({ instructions: "Be brief." })).toEqual({
    request: expect.objectContaining({
      messages: [
        expect.objectContaining({ role: "system", content: "Be brief." }),
        expect.objectContaining({ role: "user", content: "Hello" }),
      ],
      tools: null,
      parallelToolCalls: true,
      reasoningEffort: null,
      topLogprobs: null,
      maxTokens: null,
      stop: [],
    }),
    delivery: { streamed: false, includeUsage: false, choices: 1 },
    form: null,
    items: [
      {
        type: "message",
        id: expect.stringMatching(/^msg_[a-z2-7]{24}$/),
        status: "completed",
        role: "user",
        content: [{ type: "input_text", text: "Hello" }],
      },
    ],
    store: true,
    echo: expect.objectContaining({ instructions: "Be brief.", tools: [], tool_choice: "auto" }),
  });
});

test("fields become the chat's", () => {
  const { request, delivery, store } = parse({
    tools,
    parallel_tool_calls: false,
    max_output_tokens: 7,
    reasoning: { effort: "low", summary: "auto" },
    include: ["message.output_text.logprobs"],
    top_logprobs: 3,
    stream: true,
    stream_options: { include_obfuscation: false },
    store: false,
    temperature: 0.5,
    top_p: 0.9,
    top_k: 4,
    min_p: 0.1,
    repetition_penalty: 1.1,
    presence_penalty: 0.2,
    frequency_penalty: 0.3,
    logit_bias: { 5: 1 },
    seed: 9,
    draft: false,
    cache_prompt: false,
    priority: "background",
    thinking_budget: 12,
    chat_template_kwargs: { enable_thinking: true },
    ignore_eos: true,
    stop: "END",
  });
  expect(request).toMatchObject({
    tools: tools.map(({ type, ...described }) => ({ type, function: described })),
    parallelToolCalls: false,
    maxTokens: 7,
    reasoningEffort: "low",
    topLogprobs: 3,
    temperature: 0.5,
    top_p: 0.9,
    top_k: 4,
    min_p: 0.1,
    repetition_penalty: 1.1,
    presence_penalty: 0.2,
    frequency_penalty: 0.3,
    logit_bias: { 5: 1 },
    seed: 9,
    draft: false,
    cachePrompt: false,
    priority: "background",
    thinkingBudget: 12,
    templateKwargs: { enable_thinking: true },
    ignoreEos: true,
    stop: ["END"],
  });
  expect(delivery).toMatchObject({ streamed: true, choices: 1 });
  expect(store).toBe(false);
});

test("a tool keeps the order of its keys, because templates print it", () => {
  const odd = { parameters: city, strict: true, description: null, name: "f", type: "function" };
  const { request } = parse({ tools: [odd] });
  const { parameters, strict, name } = odd;
  const chat = [{ type: "function", function: { parameters, strict, name } }];
  expect(JSON.stringify(request.tools)).toBe(JSON.stringify(chat));
});

const choices: [choice: unknown, offered: string[] | null, called: string[] | null][] = [
  ["auto", ["weather", "time"], null],
  [null, ["weather", "time"], null],
  ["none", null, null],
  ["required", ["weather", "time"], ["weather", "time"]],
  [{ type: "function", name: "time" }, ["weather", "time"], ["time"]],
  [
    { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "time" }] },
    ["time"],
    null,
  ],
  [
    { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "time" }] },
    ["time"],
    ["time"],
  ],
];

test.each(choices)("tool_choice %j", (tool_choice, offered, called) => {
  const { request, form } = parse({ tools, tool_choice });
  expect(request.tools?.map((tool) => tool.function.name) ?? null).toEqual(offered);
  const of = form?.spec.kind === "calls" ? form.spec.tools : undefined;
  expect(of?.map((tool) => tool.function.name) ?? null).toEqual(called);
});

test("text.format is the form of the reply", () => {
  const form = (format: object) => parse({ text: { format } }).form;
  expect(form({ type: "text" })).toBeNull();
  const param = "text.format";
  expect(form({ type: "json_object" })).toEqual({ spec: { kind: "jsonObject" }, param });
  const schema = { name: "place", schema: city, strict: true };
  const spec = { kind: "jsonSchema", schema: city };
  expect(form({ type: "json_schema", ...schema })).toEqual({ spec, param });
  expect(parse({ text: {} }).form).toBeNull();
});

test("what a response repeats of its request", () => {
  const fields = {
    instructions: "Be brief.",
    max_output_tokens: 7,
    metadata: { a: "b" },
    parallel_tool_calls: false,
    prompt_cache_key: "k",
    safety_identifier: "s",
    store: false,
    text: { format: { type: "json_schema", name: "n", schema: city } },
    tool_choice: {
      type: "allowed_tools",
      mode: "auto",
      tools: [{ type: "function", name: "time" }],
    },
    top_logprobs: 0,
    truncation: "disabled",
    user: "u",
  };
  expect(parse({ ...fields, tools, service_tier: "auto" }).echo).toEqual({
    ...fields,
    background: false,
    max_tool_calls: null,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    service_tier: "default",
    tools: tools.map((tool) => ({ ...tool, strict: null })),
  });
});

test("null is as good as absent in every optional field", () => {
  const nulls = Object.fromEntries(
    (
      "instructions previous_response_id max_output_tokens metadata store parallel_tool_calls " +
      "tools tool_choice reasoning text include top_logprobs stream stream_options user " +
      "safety_identifier prompt_cache_key service_tier truncation background conversation prompt " +
      "stop n logprobs max_tokens messages response_format model"
    )
      .split(" ")
      .map((name) => [name, null]),
  );
  const { items, ...plain } = parse({});
  const { items: nullItems, ...parsed } = parse(nulls);
  expect(parsed).toEqual(plain);
  expect(nullItems).toHaveLength(items.length);
  const inner = { reasoning: { effort: null }, text: { format: null, verbosity: null } };
  expect(parse(inner).request).toEqual(plain.request);
});

test("an earlier response's conversation comes first, without its instructions", () => {
  const earlier: ResponseItem[] = [
    {
      type: "message",
      id: "msg_1",
      status: "completed",
      role: "user",
      content: [{ type: "input_text", text: "One" }],
    },
    {
      type: "message",
      id: "msg_2",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: "Two", annotations: [], logprobs: [] }],
    },
  ];
  const body = { input: "Three", previous_response_id: "resp_1", instructions: "New." };
  const asked: string[] = [];
  const { request, items, echo } = parseResponse(body, (id) => {
    asked.push(id);
    return earlier;
  });
  expect(asked).toEqual(["resp_1"]);
  expect(request.messages.map(({ role, content }) => [role, content])).toEqual([
    ["system", "New."],
    ["user", "One"],
    ["assistant", "Two"],
    ["user", "Three"],
  ]);
  expect(items).toEqual([...earlier, expect.objectContaining({ role: "user" })]);
  expect(echo).toMatchObject({ previous_response_id: "resp_1" });
});

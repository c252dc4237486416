import { afterAll, describe, expect, test } from "vitest";
import { endServers, testServer } from "./engine.cases.ts";
import { hello } from "./http.cases.ts";
import { weather } from "./messages.cases.ts";
import { parseMessages, parsePrompt } from "./messages-request.ts";

const server = testServer();
const { engine } = server;
afterAll(() => endServers(server));

const said = (fields: object) => ({ max_tokens: 1, messages: hello, ...fields });
const text = (of: string) => ({ type: "text", text: of });

test("every field at its place", () => {
  const body = {
    model: "x",
    max_tokens: 100,
    system: "Be brief.",
    messages: hello,
    tools: [{ ...weather, cache_control: { type: "ephemeral" }, strict: true }],
    tool_choice: { type: "any", disable_parallel_tool_use: true },
    stop_sequences: ["a", "b"],
    thinking: { type: "enabled", budget_tokens: 50 },
    output_config: { effort: "high" },
    stream: true,
    temperature: 0.5,
    top_p: 0.9,
    top_k: 40,
    seed: 3,
    draft: false,
    cache_prompt: false,
    priority: "background",
    min_p: 0.1,
    presence_penalty: 0.2,
    frequency_penalty: 0.3,
    repetition_penalty: 1.1,
    logit_bias: { 5: 1 },
    metadata: { user_id: "u" },
    service_tier: "auto",
    cache_control: { type: "ephemeral", ttl: "1h" },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    mcp_servers: [],
    container: null,
  };
  const { description, input_schema: parameters, name } = weather;
  const spec = { type: "function", function: { name, description, parameters } };
  expect(parseMessages(body)).toEqual({
    request: {
      messages: [
        { role: "system", content: [text("Be brief.")] },
        { role: "user", content: [text("Hello")] },
      ],
      tools: [spec],
      templateKwargs: { enable_thinking: true },
      reasoningEffort: "high",
      thinkingBudget: 50,
      parallelToolCalls: false,
      maxTokens: 100,
      stop: ["a", "b"],
      ignoreEos: false,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      seed: 3,
      draft: false,
      cachePrompt: false,
      priority: "background",
      min_p: 0.1,
      presence_penalty: 0.2,
      frequency_penalty: 0.3,
      repetition_penalty: 1.1,
      logit_bias: { 5: 1 },
    },
    delivery: { streamed: true, includeUsage: false, choices: 1 },
    form: { spec: { kind: "calls", tools: [spec], parallel: false }, param: "tool_choice" },
    showsThinking: true,
  });
});

test("null is as good as absent in every optional field", () => {
  const names =
    "system tools tool_choice thinking output_config output_format context_management mcp_servers " +
    "container stop_sequences stream temperature top_p top_k seed draft cache_prompt priority min_p";
  const nulls = Object.fromEntries(names.split(" ").map((name) => [name, null]));
  const plain = parseMessages(said({}));
  const given = parseMessages(said(nulls));
  expect([given.delivery, given.form]).toEqual([plain.delivery, null]);
  expect(engine.promptOf(given.request)).toEqual(engine.promptOf(plain.request));
  const { stop, draft, cachePrompt, priority, templateKwargs } = given.request;
  expect([stop, draft, cachePrompt, priority, templateKwargs]).toEqual([
    [],
    true,
    true,
    "foreground",
    {},
  ]);
});

describe("tool choice", () => {
  const form = (tool_choice: object) => parseMessages(said({ tools: [weather], tool_choice }));

  test("auto offers, none doesn't, any and tool require", () => {
    expect(form({ type: "auto" })).toMatchObject({ form: null, request: { tools: [{}] } });
    expect(form({ type: "none" })).toMatchObject({ form: null, request: { tools: null } });
    for (const choice of [{ type: "any" }, { type: "tool", name: "get_weather" }]) {
      const calls = { kind: "calls", tools: [{ function: { name: "get_weather" } }] };
      expect(form(choice).form!.spec).toMatchObject({ ...calls, parallel: true });
    }
  });
});

test("a form, by its new name and its old", () => {
  const schema = { type: "object", properties: { z: {}, a: {} } };
  const format = { type: "json_schema", schema };
  for (const [param, body] of [
    ["output_config.format", { output_config: { format } }],
    ["output_format", { output_format: format }],
  ] as const) {
    const { form } = parseMessages(said(body));
    expect(form).toEqual({ spec: { kind: "jsonSchema", schema }, param });
    expect(JSON.stringify(form)).toContain(JSON.stringify(schema));
  }
});

test("thinking: what is said of it, and what isn't", () => {
  const of = (thinking: object | null) => {
    const { request, showsThinking } = parseMessages(said({ thinking }));
    return [request.templateKwargs, request.thinkingBudget, showsThinking];
  };
  expect(of(null)).toEqual([{}, null, true]);
  expect(of({ type: "disabled" })).toEqual([{ enable_thinking: false }, null, true]);
  expect(of({ type: "adaptive" })).toEqual([{ enable_thinking: true }, null, true]);
  const omitted = { type: "enabled", budget_tokens: 9, display: "omitted" };
  expect(of(omitted)).toEqual([{ enable_thinking: true }, 9, false]);
});

describe("the prompt", () => {
  const call = (id: string, city: string) => ({
    type: "tool_use",
    id,
    name: "get_weather",
    input: { days: 2, city },
  });
  const chatCall = (id: string, city: string) => ({
    id,
    type: "function",
    function: { name: "get_weather", arguments: JSON.stringify({ days: 2, city }) },
  });
  const { description, input_schema: parameters, name } = weather;
  const tools = [{ type: "function" as const, function: { name, description, parameters } }];

  test("of three turns with tools is that of the same chat", () => {
    const messages = [
      { role: "user", content: "Weather?" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Both.", signature: "xyz" },
          { type: "redacted_thinking", data: "abc" },
          text("Let me look."),
          call("toolu_1", "Oslo"),
          call("toolu_2", "Rome"),
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: "rain" },
          { type: "tool_result", tool_use_id: "toolu_2", content: [text("su"), text("n")] },
          { ...text("And Bonn?"), cache_control: { type: "ephemeral" } },
        ],
      },
      { role: "assistant", content: [call("toolu_3", "Bonn")] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_3", is_error: true, content: "no such city" },
        ],
      },
    ];
    const system = [text("Be brief."), { ...text("Be kind."), cache_control: null }];
    const given = parsePrompt({ system, messages, tools: [weather] });
    const tool = (tool_call_id: string, content: string) => ({
      role: "tool",
      tool_call_id,
      content,
    });
    const chat = engine.promptOf({
      messages: [
        { role: "system", content: "Be brief.\n\nBe kind." },
        { role: "user", content: "Weather?" },
        {
          role: "assistant",
          content: "Let me look.",
          reasoning_content: "Both.",
          tool_calls: [chatCall("toolu_1", "Oslo"), chatCall("toolu_2", "Rome")],
        },
        tool("toolu_1", "rain"),
        tool("toolu_2", "sun"),
        { role: "user", content: "And Bonn?" },
        { role: "assistant", content: null, tool_calls: [chatCall("toolu_3", "Bonn")] },
        tool("toolu_3", "Error: no such city"),
      ],
      tools,
    });
    expect(engine.textOf(engine.promptOf(given))).toBe(engine.textOf(chat));
    expect(engine.promptOf(given)).toEqual(chat);
  });

  test("tells of a failure once, also where the result says nothing", () => {
    const results = (content: unknown) => {
      const block = { type: "tool_result", tool_use_id: "t", content, is_error: true };
      return parsePrompt({ messages: [{ role: "user", content: [block] }] }).messages[0]!.content;
    };
    expect(results("ENOENT")).toBe("Error: ENOENT");
    expect(results("Error: ENOENT")).toBe("Error: ENOENT");
    expect(results("<error>ENOENT</error>")).toBe("<error>ENOENT</error>");
    expect(results(undefined)).toBe("Error: no output");
  });

  test("joins the thoughts of a turn, and takes a late system message to the template", () => {
    const content = ["One.", "Two."].map((thinking) => ({ type: "thinking", thinking }));
    const [turn] = parsePrompt({ messages: [{ role: "assistant", content }, ...hello] }).messages;
    expect(turn).toEqual({
      role: "assistant",
      content: [],
      reasoning_content: "One.\n\nTwo.",
      tool_calls: [],
    });
    const late = parsePrompt({ messages: [...hello, { role: "system", content: "x" }] });
    expect(() => engine.promptOf(late)).toThrow("A system message must come first.");
  });

  test("keeps the keys of inputs and schemas in their order, odd ones among them", () => {
    const input = JSON.parse('{"z":1,"__proto__":{"x":2},"a":3}');
    const block = { type: "tool_use", id: "t", name: "f", input };
    const tool = { name: "f", input_schema: input };
    const body = { messages: [{ role: "assistant", content: [block] }, ...hello], tools: [tool] };
    const { messages, tools: offered } = parsePrompt(body);
    const [called] = messages[0]!.tool_calls!;
    expect(JSON.stringify(called!.function.arguments)).toBe(JSON.stringify(input));
    expect(JSON.stringify(offered![0]!.function.parameters)).toBe(JSON.stringify(input));
  });
});

import { afterAll, describe, expect, test } from "vitest";
import { bodyBytesMax, messagesMax, stopStringsMax } from "../limits.ts";
import { endServers, testServer } from "./engine.cases.ts";
import { hello, post } from "./http.cases.ts";
import { countPath, messagesPath, weather } from "./messages.cases.ts";

const server = testServer({ contextTokens: 512 });
const { app } = server;
afterAll(() => endServers(server));

const said = (fields: object) => ({ max_tokens: 1, messages: hello, ...fields });
const ask = (content: unknown) => said({ messages: [{ role: "user", content }] });
const history = (role: string, content: unknown) =>
  said({ messages: [{ role, content }, ...hello] });
const text = (of: string) => ({ type: "text", text: of });
const image = {
  type: "image",
  source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" },
};

type Row = [what: string, body: object | string, words: string];

const rows: Row[] = [
  ["nothing", "", "not valid JSON"],
  ["a list", "[]", "The body must be a JSON object."],
  ["deep JSON", `{"x": ${"[".repeat(1e5)}`, "nested deeper"],
  ["no messages", { max_tokens: 1 }, "messages is missing: it must be a list."],
  ["a text as messages", said({ messages: "a" }), 'messages must be a list, not "a".'],
  ["empty messages", said({ messages: [] }), "messages must not be empty."],
  ["a system and no messages", said({ system: "x", messages: [] }), "messages must not be empty."],
  ["too many messages", said({ messages: Array(messagesMax + 1).fill(hello[0]) }), "At most 4096"],
  [
    "too many results",
    ask(Array(messagesMax + 1).fill({ type: "tool_result", tool_use_id: "t" })),
    "At most 4096 messages and tool results are read.",
  ],
  ["a text in messages", said({ messages: ["a"] }), 'messages[0] must be an object, not "a".'],
  [
    "no role",
    said({ messages: [{ content: "a" }] }),
    'messages[0].role is missing: it must be one of "user", "assistant", "system".',
  ],
  [
    "an unknown role",
    said({ messages: [...hello, { role: "tool", content: "a" }] }),
    'messages[1].role must be one of "user", "assistant", "system", not "tool".',
  ],
  ["no content", ask(undefined), "messages[0].content is missing: it must be a string or a list"],
  [
    "null content",
    ask(null),
    "messages[0].content must be a string or a list of blocks, not null.",
  ],
  [
    "a number as content",
    ask(5),
    "messages[0].content must be a string or a list of blocks, not 5.",
  ],
  ["a number as block", ask([5]), "messages[0].content[0] must be a block, not 5."],
  [
    "a block without type",
    ask([{ text: "x" }]),
    'messages[0].content[0].type is missing: it must be one of "text", "tool_result".',
  ],
  ["a block without text", ask([{ type: "text" }]), "messages[0].content[0].text is missing"],
  [
    "a number as text",
    ask([text("a"), { type: "text", text: 5 }]),
    "messages[0].content[1].text must be a string, not 5.",
  ],
  [
    "an image",
    ask([text("a"), image]),
    'messages[0].content[1] must be a part of type "text", which is all that this model reads, not {"type":"image"',
  ],
  [
    "a document",
    ask([{ type: "document" }]),
    'messages[0].content[0] must be a part of type "text", which is all that this model reads',
  ],
  [
    "an image in a result",
    ask([{ type: "tool_result", tool_use_id: "t", content: [image] }]),
    'messages[0].content[0].content[0] must be a part of type "text", which is all that',
  ],
  [
    "an image in a reply",
    history("assistant", [image]),
    'messages[0].content[0] must be a part of type "text"',
  ],
  ["an image in system", said({ system: [image] }), 'system[0] must be a part of type "text"'],
  [
    "a call by a user",
    ask([{ type: "tool_use", id: "t", name: "f", input: {} }]),
    'messages[0].content[0].type must be one of "text", "tool_result", not "tool_use".',
  ],
  [
    "a result by the model",
    history("assistant", [{ type: "tool_result", tool_use_id: "t" }]),
    'must be one of "text", "tool_use", "thinking", "redacted_thinking", not "tool_result".',
  ],
  [
    "a result without an id",
    ask([{ type: "tool_result", content: "x" }]),
    "messages[0].content[0].tool_use_id is missing: it must be a string.",
  ],
  [
    "a number as result",
    ask([{ type: "tool_result", tool_use_id: "t", content: 5 }]),
    "messages[0].content[0].content must be a string or a list of blocks, not 5.",
  ],
  [
    "a text as is_error",
    ask([{ type: "tool_result", tool_use_id: "t", is_error: "no" }]),
    'messages[0].content[0].is_error must be true or false, not "no".',
  ],
  [
    "a call without an id",
    history("assistant", [{ type: "tool_use", name: "f", input: {} }]),
    "messages[0].content[0].id is missing",
  ],
  [
    "a call without a name",
    history("assistant", [{ type: "tool_use", id: "t", input: {} }]),
    "messages[0].content[0].name is missing",
  ],
  [
    "a text as input",
    history("assistant", [{ type: "tool_use", id: "t", name: "f", input: "{}" }]),
    'messages[0].content[0].input must be an object, not "{}".',
  ],
  [
    "thinking without text",
    history("assistant", [{ type: "thinking", signature: "x" }]),
    "messages[0].content[0].thinking is missing",
  ],
  [
    "a reply to go on with",
    said({ messages: [...hello, { role: "assistant", content: "I" }] }),
    "messages must end with a user's: a reply that is begun can't be gone on with.",
  ],
  [
    "a number as system",
    said({ system: 5 }),
    "system must be a string or a list of blocks, not 5.",
  ],
  ["a call in system", said({ system: [{ type: "tool_use" }] }), 'system[0].type must be "text"'],
  [
    "no max_tokens",
    { messages: hello },
    "max_tokens is missing: it must be a whole number over 0.",
  ],
  ["max_tokens 0", said({ max_tokens: 0 }), "max_tokens must be a whole number over 0, not 0."],
  [
    "a text as max_tokens",
    said({ max_tokens: "9" }),
    'max_tokens must be a whole number over 0, not "9".',
  ],
  ["more than the context", said({ max_tokens: 512 }), "+ 512 > 512, decrease input length"],
  ["a text as stop_sequences", said({ stop_sequences: "a" }), "stop_sequences must be a list"],
  ["a number to stop at", said({ stop_sequences: ["a", 5] }), "stop_sequences[1] must be a string"],
  ["nothing to stop at", said({ stop_sequences: [""] }), "A stop string must not be empty."],
  [
    "too much to stop at",
    said({ stop_sequences: Array(stopStringsMax + 1).fill("a") }),
    `At most ${stopStringsMax} stop strings`,
  ],
  ["an object as tools", said({ tools: {} }), "tools must be a list, not {}."],
  ["a text as tool", said({ tools: ["f"] }), 'tools[0] must be a tool, not "f".'],
  [
    "a tool of the server",
    said({ tools: [weather, { type: "web_search_20250305", name: "web_search" }] }),
    'tools[1].type must be "custom", since the server has no tools of its own, not "web_search_20250305".',
  ],
  ["a tool without a name", said({ tools: [{ input_schema: {} }] }), "tools[0].name is missing"],
  [
    "a tool named nothing",
    said({ tools: [{ name: "", input_schema: {} }] }),
    "tools[0].name must be",
  ],
  ["a tool without schema", said({ tools: [{ name: "f" }] }), "tools[0].input_schema is missing"],
  [
    "a list as schema",
    said({ tools: [{ name: "f", input_schema: [] }] }),
    "tools[0].input_schema must be an object, not [].",
  ],
  [
    "a text as tool_choice",
    said({ tool_choice: "auto" }),
    'tool_choice must be an object, not "auto".',
  ],
  [
    "an unknown tool_choice",
    said({ tool_choice: { type: "required" } }),
    'tool_choice.type must be one of "auto", "any", "tool", "none", not "required".',
  ],
  ["a choice of no tool", said({ tool_choice: { type: "tool" } }), "tool_choice.name is missing"],
  ["a choice among none", said({ tool_choice: { type: "any" } }), "tool_choice needs tools."],
  [
    "a choice of another tool",
    said({ tools: [weather], tool_choice: { type: "tool", name: "f" } }),
    'tool_choice names "f", which is not among the tools.',
  ],
  ["a text as thinking", said({ thinking: "on" }), 'thinking must be an object, not "on".'],
  [
    "an unknown way of thinking",
    said({ thinking: { type: "between_tools" } }),
    'thinking.type must be one of "disabled", "enabled", "adaptive", not "between_tools".',
  ],
  ["no budget", said({ thinking: { type: "enabled" } }), "thinking.budget_tokens is missing"],
  [
    "a budget of nothing",
    said({ thinking: { type: "enabled", budget_tokens: 0 } }),
    "thinking.budget_tokens must be a whole number over 0, not 0.",
  ],
  [
    "an unknown display",
    said({ thinking: { type: "adaptive", display: "all" } }),
    'thinking.display must be "summarized" or "omitted", not "all".',
  ],
  ["a text as output_config", said({ output_config: "x" }), "output_config must be an object"],
  [
    "an unknown effort",
    said({ output_config: { effort: "huge" } }),
    "output_config.effort must be one of none, minimal, low, medium, high, xhigh, max",
  ],
  [
    "an unknown format",
    said({ output_config: { format: { type: "regex" } } }),
    'output_config.format.type must be "json_schema", not "regex".',
  ],
  [
    "a format without schema",
    said({ output_format: { type: "json_schema" } }),
    "output_format.schema is missing: it must be an object.",
  ],
  [
    "two forms",
    said({
      output_config: { format: { type: "json_schema", schema: {} } },
      output_format: { type: "json_schema", schema: {} },
    }),
    "output_format can't be together with output_config.format.",
  ],
  [
    "calls in another form",
    said({
      tools: [weather],
      tool_choice: { type: "any" },
      output_config: { format: { type: "json_schema", schema: {} } },
    }),
    "A reply that has to be tool calls can't have another form.",
  ],
  [
    "tool uses to clear",
    said({ context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } }),
    'context_management.edits[0].type must be "clear_thinking_20251015", not "clear_tool_uses',
  ],
  [
    "thinking to clear",
    said({
      context_management: {
        edits: [{ type: "clear_thinking_20251015", keep: { type: "thinking_turns", value: 1 } }],
      },
    }),
    'context_management.edits[0].keep must be "all", not {"type":"thinking_turns"',
  ],
  ["MCP servers", said({ mcp_servers: [{}] }), "mcp_servers must be empty, since the server"],
  [
    "a container",
    said({ container: "c" }),
    "container must be null, since the server runs no code",
  ],
  ["a text as stream", said({ stream: "yes" }), 'stream must be true or false, not "yes".'],
  ["a text as temperature", said({ temperature: "hot" }), "temperature must be"],
  ["top_p 2", said({ top_p: 2 }), "top_p must be over 0 and at most 1, not 2."],
  ["top_k 1.5", said({ top_k: 1.5 }), "top_k must be a whole number, not 1.5."],
  ...Object.entries({
    n: 2,
    stop: ["a"],
    response_format: { type: "json_object" },
    guided_regex: "a",
    structured_outputs: { regex: "a" },
    reasoning_effort: "low",
    thinking_budget: 3,
    chat_template_kwargs: {},
    ignore_eos: true,
    min_tokens: 5,
    max_completion_tokens: 5,
    n_predict: 5,
    enable_thinking: false,
    json_schema: {},
    reasoning_budget_tokens: 5,
    top_logprobs: 2,
    functions: [{ name: "f" }],
  }).map(([name, value]): (typeof rows)[number] => [name, said({ [name]: value }), `${name} `]),
  [
    "a form that nothing has",
    said({ output_config: { format: { type: "json_schema", schema: { enum: [] } } } }),
    "output_config.format: ",
  ],
  [
    "one where forms stood before",
    said({ output_format: { type: "json_schema", schema: { enum: [] } } }),
    "output_format: ",
  ],
  ["a wrong seed", said({ seed: "x" }), "seed must be a whole number"],
  ["a wrong priority", said({ priority: "high" }), 'priority must be "foreground" or "background"'],
];

describe("refused", () => {
  test.each(rows)("%s", async (_, body, words) => {
    const response = await post(app, messagesPath, body);
    expect(await response.json()).toEqual({
      type: "error",
      error: {
        type: "invalid_request_error",
        message: expect.stringContaining(words),
        details: { error_code: expect.any(String) },
      },
    });
    expect(response.status).toBe(400);
  });

  test("by count_tokens too, which needs no max_tokens, and counts a reply that is there", async () => {
    const replied = [...hello, { role: "assistant", content: "Hi" }];
    for (const [body, status] of [
      [ask([image]), 400],
      [said({ messages: [] }), 400],
      [{ messages: hello }, 200],
      [{ messages: replied }, 200],
    ] as const) {
      expect((await post(app, countPath, body)).status).toBe(status);
    }
  });
});

describe("errors of the server's other parts are Anthropic's on these paths", () => {
  const error = async (response: Response | Promise<Response>) => {
    const { status, headers } = await response;
    const { type, error } = await (await response).json();
    return { status, allow: headers.get("Allow"), type, error: error.type };
  };

  test("a body that is too large, or none that is read", async () => {
    const large = `{"x": "${"x".repeat(bodyBytesMax)}"}`;
    expect(await error(post(app, messagesPath, large))).toEqual({
      status: 413,
      allow: null,
      type: "error",
      error: "request_too_large",
    });
    const headers = { "Content-Type": "text/plain" };
    expect(await error(post(app, countPath, "{}", { headers }))).toMatchObject({
      status: 415,
      error: "invalid_request_error",
    });
  });

  test("other methods and other paths", async () => {
    for (const path of ["/v1/messages", "/messages", "/v1/messages/count_tokens"]) {
      const refused = { status: 405, allow: "POST", type: "error" };
      expect(await error(app.request(path))).toMatchObject(refused);
    }
    const unknown = { status: 404, type: "error", error: "not_found_error" };
    expect(await error(post(app, "/v1/messages/batches", {}))).toMatchObject(unknown);
    // Whoever comes here may speak either.
    expect(await error(post(app, "/v1/messagesx", {}))).toMatchObject({ type: undefined });
  });
});

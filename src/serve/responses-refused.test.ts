import { afterAll, test } from "vitest";
import { jsonDepthMax, messagesMax } from "../limits.ts";
import { endServers, testServer } from "./engine.cases.ts";
import { expectError } from "./http.cases.ts";
import { responsesPath } from "./responses.cases.ts";

const server = testServer({ contextTokens: 512 });
const { app } = server;
afterAll(() => endServers(server));

const tools = ["weather", "time"].map((name) => ({ type: "function", name }));

type Row = [what: string, body: object | string, code: string, param: string | null, words: string];

const ask = (fields: object) => ({ input: "Hello", max_output_tokens: 1, ...fields });
const item = (fields: object) => ask({ input: [{ role: "user", content: "Hello" }, fields] });
const part = (fields: unknown) => ask({ input: [{ role: "user", content: [fields] }] });
const type = "invalid_type";
const value = "invalid_value";
const not = "unsupported_parameter";

const refused: Row[] = [
  ["malformed JSON", '{"input": ', "invalid_json", null, "not valid JSON"],
  ["a list", "[]", type, null, "must be a JSON object"],
  ["no input", {}, "missing_field", "input", "a string or a list of items"],
  ["null input", { input: null }, type, "input", "not null."],
  ["a number as input", { input: 5 }, type, "input", "not 5."],
  ["no items", { input: [] }, value, "input", "must not be empty"],
  ["a text among items", { input: ["a"] }, type, "input[0]", 'an item, not "a".'],
  ["an item of nothing", { input: [{}] }, "missing_field", "input[0].role", "is missing"],
  ["an unknown role", item({ role: "tool", content: "x" }), type, "input[1].role", 'not "tool".'],
  ["no content", item({ role: "user" }), "missing_field", "input[1].content", "list of parts"],
  ["null content", item({ role: "user", content: null }), type, "input[1].content", "not null."],
  ["a number as id", item({ role: "user", content: "x", id: 1 }), type, "input[1].id", "a string"],
  ["a number as type", item({ type: 5 }), type, "input[1].type", "an item, not 5."],
  [
    "an image",
    part({ type: "input_image", image_url: "data:" }),
    value,
    "input[0].content[0]",
    'which is all that this model reads, not one of type "input_image".',
  ],
  ["a file", part({ type: "input_file" }), value, "input[0].content[0]", '"input_file".'],
  ["audio", part({ type: "input_audio" }), value, "input[0].content[0]", '"input_audio".'],
  ["a chat's part", part({ type: "text", text: "x" }), value, "input[0].content[0]", '"text".'],
  ["a part of text", part("x"), value, "input[0].content[0]", 'not "x".'],
  [
    "a part without text",
    part({ type: "input_text" }),
    value,
    "input[0].content[0].text",
    "must be a string, not nothing.",
  ],
  [
    "a call without a name",
    item({ type: "function_call", call_id: "c", arguments: "{}" }),
    "missing_field",
    "input[1].name",
    "a string",
  ],
  [
    "half a call",
    item({ type: "function_call", call_id: "c", name: "f", arguments: '{"a": ' }),
    type,
    "input[1].arguments",
    "the text of a JSON object",
  ],
  [
    "a list as arguments",
    item({ type: "function_call", call_id: "c", name: "f", arguments: "[]" }),
    type,
    "input[1].arguments",
    "the text of a JSON object",
  ],
  [
    "deep arguments",
    item({
      type: "function_call",
      call_id: "c",
      name: "f",
      arguments: `{"a":${"[".repeat(jsonDepthMax)}${"]".repeat(jsonDepthMax)}}`,
    }),
    type,
    "input[1].arguments",
    "the text of a JSON object",
  ],
  [
    "an output of nobody's call",
    item({ type: "function_call_output", output: "x" }),
    "missing_field",
    "input[1].call_id",
    "a string",
  ],
  [
    "a call without output",
    item({ type: "function_call_output", call_id: "c" }),
    "missing_field",
    "input[1].output",
    "a string or a list of parts",
  ],
  [
    "an image as output",
    item({ type: "function_call_output", call_id: "c", output: [{ type: "input_image" }] }),
    value,
    "input[1].output[0]",
    '"input_image".',
  ],
  [
    "reasoning of another kind",
    item({ type: "reasoning", content: [{ type: "output_text", text: "x" }] }),
    value,
    "input[1].content[0]",
    '"reasoning_text"',
  ],
  [
    "an item_reference",
    item({ type: "item_reference", id: "x" }),
    not,
    "input[1].type",
    "can't be",
  ],
  ["a bare reference", item({ id: "msg_1" }), not, "input[1].type", '"item_reference"'],
  ["a hosted call", item({ type: "web_search_call" }), not, "input[1].type", '"web_search_call"'],
  [
    "a late system message",
    item({ role: "system", content: "x" }),
    value,
    "input",
    "A system message must come first.",
  ],
  [
    "too many items",
    { input: Array(messagesMax + 1).fill({ role: "user", content: "x" }) },
    "too_many",
    "input",
    "4096",
  ],
  ["instructions list", ask({ instructions: [] }), type, "instructions", "a string, not []."],
  ["max_output_tokens 0", ask({ max_output_tokens: 0 }), type, "max_output_tokens", "over 0"],
  [
    "max_output_tokens text",
    ask({ max_output_tokens: "9" }),
    type,
    "max_output_tokens",
    'not "9".',
  ],
  ["max_tokens", ask({ max_tokens: 5 }), not, "max_tokens", "is called max_output_tokens here"],
  ["messages", ask({ messages: [] }), not, "messages", "is called input here"],
  [
    "response_format",
    ask({ response_format: { type: "text" } }),
    not,
    "response_format",
    "is called text.format here",
  ],
  [
    "reasoning_effort",
    ask({ reasoning_effort: "low" }),
    not,
    "reasoning_effort",
    "reasoning.effort",
  ],
  ["n", ask({ n: 2 }), not, "n", "is not supported except as 1."],
  ["background", ask({ background: true }), not, "background", "except as false."],
  ["conversation", ask({ conversation: "conv_1" }), not, "conversation", "is not supported."],
  ["prompt", ask({ prompt: { id: "p" } }), not, "prompt", "is not supported."],
  ["truncation", ask({ truncation: "auto" }), not, "truncation", 'except as "disabled".'],
  ["moderation", ask({ moderation: { model: "m" } }), not, "moderation", "is not supported."],
  [
    "context_management",
    ask({ context_management: [{ type: "compaction" }] }),
    not,
    "context_management",
    "is not supported.",
  ],
  [
    "another include",
    ask({ include: ["message.output_text.logprobs", "reasoning.encrypted_content"] }),
    not,
    "include[1]",
    'may only be "message.output_text.logprobs"',
  ],
  ["include text", ask({ include: "x" }), type, "include", 'a list, not "x".'],
  ["top_logprobs 21", ask({ top_logprobs: 21 }), type, "top_logprobs", "from 0 to 20"],
  ["top_logprobs alone", ask({ top_logprobs: 2 }), value, "top_logprobs", "needs include"],
  ["verbosity", ask({ text: { verbosity: "low" } }), not, "text.verbosity", 'only be "medium"'],
  ["text as text", ask({ text: "x" }), type, "text", "an object"],
  [
    "an unknown format",
    ask({ text: { format: { type: "xml" } } }),
    type,
    "text.format.type",
    '"json_schema"',
  ],
  [
    "a chat's format",
    ask({ text: { format: { type: "json_schema", json_schema: { schema: {} } } } }),
    "missing_field",
    "text.format.name",
    "a string",
  ],
  [
    "a text as schema",
    ask({ text: { format: { type: "json_schema", name: "n", schema: "{}" } } }),
    type,
    "text.format.schema",
    "an object",
  ],
  ["another effort", ask({ reasoning: { effort: "huge" } }), type, "reasoning.effort", "one of"],
  ["reasoning text", ask({ reasoning: "low" }), type, "reasoning", "an object"],
  ["metadata list", ask({ metadata: [] }), type, "metadata", "an object, not []."],
  ["a number in metadata", ask({ metadata: { a: 1 } }), type, "metadata.a", "a string, not 1."],
  [
    "a long value in metadata",
    ask({ metadata: { a: "x".repeat(513) } }),
    type,
    "metadata.a",
    "at most 512 characters",
  ],
  [
    "a long key in metadata",
    ask({ metadata: { ["x".repeat(65)]: "a" } }),
    type,
    "metadata",
    "keys of at most 64 characters",
  ],
  [
    "17 pairs of metadata",
    ask({ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [at, "x"])) }),
    type,
    "metadata",
    "at most 16 pairs",
  ],
  ["store 1", ask({ store: 1 }), type, "store", "true or false"],
  ["stream text", ask({ stream: "yes" }), type, "stream", 'not "yes".'],
  [
    "include_obfuscation 1",
    ask({ stream_options: { include_obfuscation: 1 } }),
    type,
    "stream_options.include_obfuscation",
    "true or false",
  ],
  ["a hosted tool", ask({ tools: [{ type: "web_search" }] }), not, "tools[0].type", "web_search"],
  [
    "a custom tool",
    ask({ tools: [...tools, { type: "custom", name: "f" }] }),
    not,
    "tools[2].type",
    '"custom"',
  ],
  [
    "a chat's tool",
    ask({ tools: [{ type: "function", function: { name: "f" } }] }),
    "missing_field",
    "tools[0].name",
    "a name",
  ],
  ["a tool of text", ask({ tools: ["f"] }), type, "tools[0]", 'a tool of type "function"'],
  [
    "a hosted choice",
    ask({ tools, tool_choice: { type: "web_search" } }),
    not,
    "tool_choice",
    'a tool of type "web_search"',
  ],
  ["another choice", ask({ tools, tool_choice: "any" }), type, "tool_choice", 'not "any".'],
  [
    "a chat's choice",
    ask({ tools, tool_choice: { type: "function", function: { name: "time" } } }),
    type,
    "tool_choice",
    "a function, or allowed tools",
  ],
  [
    "an unknown choice",
    ask({ tools, tool_choice: { type: "function", name: "x" } }),
    value,
    "tool_choice",
    'names "x"',
  ],
  ["required without tools", ask({ tool_choice: "required" }), value, "tool_choice", "needs tools"],
  ["temperature -1", ask({ temperature: -1 }), value, "temperature", "at least 0"],
  ["top_p text", ask({ top_p: "1" }), value, "top_p", "finite number"],
  ["stop 5", ask({ stop: 5 }), type, "stop", "a string or a list of strings"],
  ["another priority", ask({ priority: "high" }), type, "priority", 'not "high".'],
  ["user 5", ask({ user: 5 }), type, "user", "a string"],
  ["previous_response_id 5", ask({ previous_response_id: 5 }), type, "previous_response_id", "5"],
  [
    "a conversation that doesn't fit",
    ask({ input: "word ".repeat(600) }),
    "context_length_exceeded",
    "input",
    "maximum context length is 512 tokens",
  ],
];

test.each(refused)("refused: %s", async (_, body, code, param, words) => {
  await expectError(app, responsesPath, body, 400, { code, param, words });
});

test("an unknown earlier response is not found", async () => {
  const expected = {
    code: "previous_response_not_found",
    param: "previous_response_id",
    words: 'No response "resp_x" is stored here.',
  };
  const body = ask({ previous_response_id: "resp_x" });
  await expectError(app, responsesPath, body, 404, expected);
  await expectError(app, responsesPath, { ...body, stream: true }, 404, expected);
});

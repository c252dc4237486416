/** What is recorded of replies: chats, tools, completions, responses and messages. */
import type { Ask, CorpusGroup } from "./corpus.cases.ts";
import { chatPath, hello, textPath, weatherCall } from "./http.cases.ts";
import { weather as messagesWeather } from "./messages.cases.ts";
import { noThinking, weather as responsesWeather } from "./responses.cases.ts";

type Row = [what: string, fields: object, says: string];

/** Each whole and streamed. */
const both = (path: string, rows: readonly Row[], base: object): Ask[] =>
  rows.flatMap(([what, fields, says]) => [
    { what, path, body: { ...base, ...fields }, says },
    { what: `${what}, streamed`, path, body: { ...base, ...fields, stream: true }, says },
  ]);

const good = "Hm.\n</think>\n\nGood day \u{1F980}";
const usage = { stream_options: { include_usage: true } };

const chats: Row[] = [
  ["reasoning and content", {}, good],
  ["content", noThinking, "Good day"],
  ["nothing", noThinking, ""],
  ["reasoning without end", {}, "Hm"],
  ["usage", usage, good],
  ["no usage", { stream_options: { include_usage: false } }, good],
  ["logprobs", { ...noThinking, logprobs: true, top_logprobs: 2 }, "Good \u{1F980}"],
  ["logprobs alone", { ...noThinking, logprobs: true }, "Good"],
  ["max_tokens", { max_tokens: 2 }, good],
  ["max_completion_tokens", { max_completion_tokens: 2, max_tokens: 9 }, good],
  ["a stop string", { ...noThinking, stop: "day" }, "Good day"],
  ["several stop strings", { ...noThinking, stop: ["x", "oo"] }, "Good day"],
  ["a thinking budget", { thinking_budget: 1 }, "a b c d"],
  ["no effort", { reasoning_effort: "none" }, "Good"],
  ["an effort", { reasoning_effort: "high" }, good],
  ["no drafts", { draft: false }, good],
  ["in the background", { priority: "background" }, good],
  ["a system message", { messages: [{ role: "system", content: "Be kind." }, ...hello] }, good],
  ["a developer's", { messages: [{ role: "developer", content: "Be kind." }, ...hello] }, good],
  [
    "parts",
    { messages: [{ role: "user", content: ["a", "b"].map((text) => ({ type: "text", text })) }] },
    good,
  ],
  [
    "a second turn",
    {
      messages: [
        ...hello,
        { role: "assistant", reasoning_content: "Hm.", content: "Hi." },
        { role: "user", content: "Bye" },
      ],
    },
    good,
  ],
  [
    "fields of others",
    { user: "a", metadata: { a: "b" }, store: false, service_tier: "auto" },
    good,
  ],
  ["a choice", { ...noThinking, guided_choice: ["yes", "no"] }, "no"],
  ["a JSON object", { ...noThinking, response_format: { type: "json_object" } }, '{"a":1}'],
];

/** Drawn from the backend's own rows. */
const drawn: Row[] = [
  ["a seed", { seed: 1 }, ""],
  ["another seed", { seed: 2 }, ""],
  ["no seed", {}, ""],
  ["greedy", { temperature: 0 }, ""],
  ["all of sampling", { temperature: 1.5, top_p: 0.9, top_k: 40, min_p: 0.01, seed: 5 }, ""],
  ["penalties", { repetition_penalty: 1.1, presence_penalty: 1, frequency_penalty: 0.5 }, ""],
  ["a bias", { logit_bias: { 100: 100 } }, ""],
  ["two choices", { n: 2, seed: 1, logprobs: true }, ""],
];

const { type, ...declared } = responsesWeather as { type: string };
const chatTools = [{ type, function: declared }];
const oslo = weatherCall("Oslo");
const two = `${oslo}\n${weatherCall("Bergen")}`;
const named = { type: "function", function: { name: "get_weather" } };

const tools: Row[] = [
  ["a call", noThinking, oslo],
  ["reasoning and a call", {}, `Hm.\n</think>\n\n${oslo}`],
  ["a call in reasoning", {}, `Hm.\n${oslo}`],
  ["text and two calls", noThinking, `So:\n${two}`],
  ["one call alone", { ...noThinking, parallel_tool_calls: false }, two],
  ["no call", noThinking, "None."],
  ["half a call", { ...noThinking, max_tokens: 12 }, oslo],
  ["no tools after all", { ...noThinking, tool_choice: "none" }, oslo],
  ["a required call", { ...noThinking, tool_choice: "required" }, oslo],
  ["a named call", { ...noThinking, tool_choice: named }, oslo],
  ["another tool's call", noThinking, oslo.replace("get_weather", "get_time")],
  ["what only looks like one", noThinking, "<tool_call>\nno\n</tool_call>"],
  [
    "a result",
    {
      messages: [
        ...hello,
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "a", ...named, function: { ...named.function, arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "a", content: "rain" },
      ],
    },
    "\n</think>\n\nIt rains.",
  ],
];

const completions: Row[] = [
  ["a text", {}, " there was \u{1F980}"],
  ["ids", { prompt: [1, 2, 3] }, "one"],
  ["one text in a list", { prompt: ["Once"] }, "one"],
  ["usage", usage, " there"],
  ["logprobs", { logprobs: 2 }, " there \u{1F980}"],
  ["an echo", { echo: true }, " there"],
  ["an echo of ids", { prompt: [1, 2], echo: true }, " there"],
  ["max_tokens", { max_tokens: 1 }, " there was"],
  ["a stop string", { stop: ["was"] }, " there was"],
  ["past the end", { ignore_eos: true, max_tokens: 3 }, "a"],
  ["special tokens", { prompt: "<|im_start|>user" }, "\n"],
  ["a pattern", { guided_regex: "[a-c]{2}" }, "ab"],
];

const responses: Row[] = [
  ["reasoning and text", {}, good],
  ["text", noThinking, "Good day"],
  ["nothing", noThinking, ""],
  ["cut short", { ...noThinking, max_output_tokens: 1 }, "Good day"],
  ["cut in its reasoning", { max_output_tokens: 1 }, good],
  ["items", { input: [{ role: "user", content: [{ type: "input_text", text: "Hello" }] }] }, good],
  ["instructions", { instructions: "Be kind.", metadata: { a: "b" } }, good],
  ["an effort", { reasoning: { effort: "none" } }, "Good"],
  ["a call", { ...noThinking, tools: [responsesWeather] }, oslo],
  ["text and two calls", { ...noThinking, tools: [responsesWeather] }, `So:\n${two}`],
  ["half a call", { ...noThinking, tools: [responsesWeather], max_output_tokens: 12 }, oslo],
  ["not stored", { ...noThinking, store: false }, "Good"],
  [
    "logprobs",
    { ...noThinking, include: ["message.output_text.logprobs"], top_logprobs: 1 },
    "Good",
  ],
  [
    "a result",
    {
      input: [
        { role: "user", content: "Weather?" },
        { type: "function_call", call_id: "a", name: "get_weather", arguments: "{}" },
        { type: "function_call_output", call_id: "a", output: "rain" },
      ],
    },
    "\n</think>\n\nIt rains.",
  ],
];

const stored = "/v1/responses/<resp_1>";
const chains: Ask[] = [
  { what: "a first response", path: "/v1/responses", body: { input: "Hello" }, says: good },
  {
    what: "one that goes on from it",
    path: "/v1/responses",
    body: { input: "Bye", previous_response_id: "<resp_1>" },
    says: "\n</think>\n\nBye.",
    goesOn: true,
  },
  { what: "the first again", method: "GET", path: stored, goesOn: true },
  { what: "its items", method: "GET", path: `${stored}/input_items`, goesOn: true },
  {
    what: "items of the second",
    method: "GET",
    path: "/v1/responses/<resp_2>/input_items?order=asc&limit=2",
    goesOn: true,
  },
  { what: "the first is deleted", method: "DELETE", path: stored, goesOn: true },
  { what: "it is gone", method: "GET", path: stored, goesOn: true },
  {
    what: "nothing goes on from it",
    path: "/v1/responses",
    body: { input: "Bye", previous_response_id: "<resp_1>" },
    goesOn: true,
  },
];

const off = { thinking: { type: "disabled" } };
const messages: Row[] = [
  ["thinking and text", {}, good],
  ["text", off, "Good day"],
  ["nothing", off, ""],
  ["hidden thinking", { thinking: { type: "adaptive", display: "omitted" } }, good],
  ["a thinking budget", { thinking: { type: "enabled", budget_tokens: 1 } }, "a b c"],
  ["cut short", { ...off, max_tokens: 1 }, "Good day"],
  ["a stop string", { ...off, stop_sequences: ["day"] }, "Good day"],
  ["a system prompt", { ...off, system: [{ type: "text", text: "Be kind." }] }, "Good"],
  ["a call", { ...off, tools: [messagesWeather] }, oslo],
  ["text and two calls", { ...off, tools: [messagesWeather] }, `So:\n${two}`],
  ["half a call", { ...off, tools: [messagesWeather], max_tokens: 12 }, oslo],
  ["a required call", { ...off, tools: [messagesWeather], tool_choice: { type: "any" } }, oslo],
  [
    "a result",
    {
      messages: [
        ...hello,
        { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "rain" }] },
      ],
    },
    "\n</think>\n\nIt rains.",
  ],
];
const countPath = "/v1/messages/count_tokens";
const counts: Ask[] = [
  { what: "a count", path: countPath, body: { messages: hello } },
  {
    what: "a count with tools",
    path: countPath,
    body: { messages: hello, tools: [messagesWeather] },
  },
  { what: "without the version", path: "/messages/count_tokens", body: { messages: hello } },
];

const ownRows = { server: { logits: () => {} } };
const short = { messages: hello, max_tokens: 4 };

export const replyGroups: readonly CorpusGroup[] = [
  { name: "chats", asks: both(chatPath, chats, { messages: hello }) },
  { name: "drawn", ...ownRows, asks: both(chatPath, drawn, short) },
  { name: "tools", asks: both(chatPath, tools, { messages: hello, tools: chatTools }) },
  { name: "completions", asks: both(textPath, completions, { prompt: "Once" }) },
  { name: "responses", asks: [...both("/v1/responses", responses, { input: "Hello" }), ...chains] },
  {
    name: "messages",
    asks: [...both("/v1/messages", messages, { max_tokens: 99, messages: hello }), ...counts],
  },
];

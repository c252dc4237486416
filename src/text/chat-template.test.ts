import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { CheckpointError, InputError } from "../errors.ts";
import type { ChatMessage } from "./chat-messages.ts";
import { ChatTemplate, endsInOpenThink } from "./chat-template.ts";
import type { ToolSpec } from "./tool-calls.ts";

interface Case {
  name: string;
  messages: ChatMessage[];
  tools: ToolSpec[] | null;
  enable_thinking: boolean | null;
  rendered: string;
}

const golden = new URL("../../fixtures/golden/chat_template.json", import.meta.url);
const cases: Case[] = JSON.parse(readFileSync(golden, "utf8"));
const nanoSource = new URL("../../models/nano/chat_template.jinja", import.meta.url);
const nano = ChatTemplate.fromSource(readFileSync(nanoSource, "utf8"), "chat_template.jinja");

function render(messages: readonly ChatMessage[], template: ChatTemplate = nano): string {
  return template.render(messages, { tools: null, addGenerationPrompt: false });
}

/** Renders `source` with one user message and the given variables. */
function renderSource(source: string, kwargs: Record<string, unknown> = {}): string {
  const template = ChatTemplate.fromSource(source, "t.jinja");
  const options = { tools: null, addGenerationPrompt: true, kwargs };
  return template.render([{ role: "user", content: "hi" }], options);
}

test.each(cases)("golden: $name", ({ messages, tools, enable_thinking, rendered }) => {
  const options = { tools, addGenerationPrompt: true, kwargs: { enable_thinking } };
  expect(nano.render(messages, options)).toBe(rendered);
  expect(endsInOpenThink(rendered)).toBe(enable_thinking !== false);
});

test("arguments as JSON text render like parsed ones", () => {
  const { messages, tools, rendered } = cases.find(({ name }) => name === "two_tool_results")!;
  const asText = messages.map((message) => ({
    ...message,
    tool_calls: message.tool_calls?.map((call) => ({
      ...call,
      function: { ...call.function, arguments: JSON.stringify(call.function.arguments) },
    })),
  })) as ChatMessage[];
  expect(nano.render(asText, { tools, addGenerationPrompt: true })).toBe(rendered);
});

describe("normalising", () => {
  test("text parts are joined", () => {
    const content = [
      { type: "text", text: "Hel" },
      { type: "text", text: "lo" },
    ];
    const plain = render([{ role: "user", content: "Hello" }]);
    expect(render([{ role: "user", content }])).toBe(plain);
  });

  test("leading system and developer messages are merged, blank ones left out", () => {
    const merged = render([
      { role: "system", content: "One." },
      { role: "developer", content: "" },
      { role: "developer", content: "Two." },
      { role: "user", content: "Hi" },
    ]);
    const whole = [
      { role: "system", content: "One.\n\nTwo." },
      { role: "user", content: "Hi" },
    ];
    expect(merged).toBe(render(whole));
  });

  test("a lone developer message is a system message; system-only renders", () => {
    const text = "<|im_start|>system\nS<|im_end|>\n";
    expect(render([{ role: "developer", content: "S" }])).toBe(text);
  });

  test("absent and null content render as the empty text does, which a user may send too", () => {
    const empty = render([{ role: "system", content: "" }]);
    expect(render([{ role: "system", content: null }])).toBe(empty);
    expect(render([{ role: "system" }])).toBe(empty);
    expect(render([{ role: "user", content: "" }])).toBe("<|im_start|>user\n<|im_end|>\n");
  });

  test("a __proto__ key among the arguments is an argument", () => {
    const call = { function: { name: "f", arguments: '{"__proto__": {"x": 1}, "a": "b"}' } };
    const text = render([{ role: "assistant", tool_calls: [call] }]);
    expect(text).toContain('<parameter=__proto__>\n{"x": 1}\n</parameter>\n<parameter=a>\nb\n');
  });
});

const hello = { role: "user", content: "x" };
const text = { type: "text", text: "x" };
const calling = (calls: unknown) => ({ role: "assistant", tool_calls: calls });
const call = (written: unknown) => calling([{ function: { name: "f", arguments: written } }]);
const deep = `{"a":${"[".repeat(100)}${"]".repeat(100)}}`;
const cycle: Record<string, unknown> = {};
cycle["self"] = cycle;
const user = (content: unknown) => [hello, { role: "user", content }];
const argumentsPlace = "messages[0].tool_calls[0].function.arguments";

test.each<[string, unknown[], place: string, words: string]>([
  ["no messages", [], "messages", "must not be empty."],
  [
    "an unknown role",
    [hello, { role: "wizard", content: "x" }],
    "messages[1].role",
    'must be system, developer, user, assistant or tool, not "wizard".',
  ],
  ["no role", [{ content: "x" }], "messages[0].role", "not nothing."],
  ["not an object", [hello, null], "messages[1]", "must be an object."],
  ["a user without content", [hello, { role: "user" }], "messages[1].content", "is missing"],
  ["a user's null", user(null), "messages[1].content", "is missing"],
  ["a number as content", user(3), "messages[1].content", "a list of parts or null."],
  [
    "an image",
    user([text, { type: "image_url" }]),
    "messages[1].content[1]",
    'must be a part of type "text", which is all that this model reads, not one of type "image_url".',
  ],
  ["no text", user([text, { type: "text" }]), "messages[1].content[1].text", "must be a string"],
  ["a part that is none", user(["x"]), "messages[1].content[0]", 'reads, not "x".'],
  ["arguments that are not JSON", [call("{")], argumentsPlace, "must be a JSON object"],
  ["arguments that are no object", [call("[1]")], argumentsPlace, "must be a JSON object"],
  ["arguments that are empty text", [call("")], argumentsPlace, "must be a JSON object"],
  ["arguments nested too deeply", [call(deep)], argumentsPlace, "at most 64 levels deep."],
  ["the same as an object", [call(JSON.parse(deep))], argumentsPlace, "at most 64 levels deep."],
  ["arguments that hold themselves", [call(cycle)], argumentsPlace, "must be a JSON object"],
  ["an empty call", [calling([{}])], "messages[0].tool_calls[0]", "an object with a function."],
  [
    "a call without a name",
    [calling([{ function: { name: "f" } }, { function: {} }])],
    "messages[0].tool_calls[1].function.name",
    "must be a string",
  ],
  ["calls that are no list", [calling({})], "messages[0].tool_calls", "must be a list."],
  [
    "reasoning that is no text",
    [{ role: "assistant", reasoning_content: 1 }],
    "messages[0].reasoning_content",
    "must be a string.",
  ],
  [
    "a system message later on, in the template's words",
    [hello, { role: "system", content: "y" }],
    "messages",
    "A system message must come first.",
  ],
])("refused with 400, naming the place: %s", (_, messages, place, words) => {
  const attempt = () => render(messages as ChatMessage[]);
  expect(attempt).toThrow(InputError);
  expect(attempt).toThrow(words);
  expect(attempt).toThrow(expect.objectContaining({ status: 400, param: place }));
});

describe("templates", () => {
  test("a template that can't be parsed names its file", () => {
    expect(() => ChatTemplate.fromSource("{% if %}", "a/t.jinja")).toThrow(CheckpointError);
    expect(() => ChatTemplate.fromSource("{% if %}", "a/t.jinja")).toThrow(/^a\/t\.jinja: /);
  });

  test("any failure while rendering is the request's, never a crash", () => {
    expect(() => renderSource("{{ 1 | nosuchfilter }}")).toThrow(InputError);
    expect(() => renderSource("{{ raise_exception('No way.') }}")).toThrow("No way.");
    expect(() => renderSource("x", { range: 1 })).toThrow(InputError);
  });

  test("keywords reach the template, null as undefined, and can't replace the messages", () => {
    const source = "{{ a is defined }} {{ b }} {{ messages[0].content }} {{ __proto__ }}";
    const kwargs = JSON.parse('{"a": null, "b": "B", "messages": [], "__proto__": "p"}');
    expect(renderSource(source, kwargs)).toBe("false B hi p");
  });

  test("strips are Python's", () => {
    const text = "\x1c\u0085\u3000 x\ufeff\n";
    expect(renderSource("[{{ text | trim }}]", { text })).toBe("[x\ufeff]");
    expect(renderSource("[{{ text.strip() }}]", { text })).toBe("[x\ufeff]");
    expect(renderSource("[{{ text.rstrip('\\n') }}]", { text: "  x \n\n" })).toBe("[  x ]");
    expect(renderSource("[{{ text.lstrip('\\n') }}]", { text: "\n\n  x " })).toBe("[  x ]");
    const cut = "{{ text.split('</think>')[-1].lstrip('\\n') | trim + '!' }}";
    expect(renderSource(cut, { text: "a</think>\n\n b " })).toBe("b!");
    expect(renderSource("[{{ nothing | trim }}]")).toBe("[]");
  });
});

test("endsInOpenThink looks at the generation prompt alone", () => {
  expect(endsInOpenThink("<|im_start|>assistant\n<think>\n")).toBe(true);
  expect(endsInOpenThink("<|im_start|>assistant\n<think>\n\n</think>\n\n")).toBe(false);
  expect(endsInOpenThink("<|im_start|>user\n<think><|im_end|>\n<|im_start|>assistant\n")).toBe(
    false,
  );
});

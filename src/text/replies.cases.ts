import type { ParsedReply, ReplyParserOptions } from "./reply-parser.ts";
import type { ToolSpec } from "./tool-calls.ts";

/** A reply, and what it must be taken for. */
export interface ReplyCase extends ParsedReply {
  readonly what: string;
  readonly text: string;
  readonly options: ReplyParserOptions;
  /** Of `toolCalls`; absent: all. */
  readonly callsEnded?: number;
}

const properties = {
  s: { type: "string" },
  i: { type: "integer" },
  b: { type: "boolean" },
  o: { type: "object" },
  n: { type: ["string", "null"] },
};
const tool: ToolSpec = {
  type: "function",
  function: { name: "f", parameters: { type: "object", properties } },
};
const plain: ReplyParserOptions = { reasoningOpen: false, tools: [tool], oneCall: false };
const thinking: ReplyParserOptions = { ...plain, reasoningOpen: true };
const oneCall: ReplyParserOptions = { ...plain, oneCall: true };
const noTools: ReplyParserOptions = { ...thinking, tools: null };

function reply(
  what: string,
  text: string,
  expected: Partial<ParsedReply>,
  options = plain,
): ReplyCase {
  return { what, text, options, reasoning: "", content: "", toolCalls: [], ...expected };
}

const asWritten = (what: string, text: string) => reply(what, text, { content: text });

const head = "<tool_call>\n<function=f>\n";
const closing = "</function>\n</tool_call>";
/** A call without arguments. */
const now = `<tool_call>\n<function=now>\n${closing}`;
const bare = "<tool_call><function=f></function>";
/** A parameter as templates write it. */
const given = (key: string, value: string) => `<parameter=${key}>\n${value}\n</parameter>\n`;

const f = (args = "{}") => ({ name: "f", arguments: args });
const nowCall = { name: "now", arguments: "{}" };

/** A call with this behind its head, and the arguments it gives. */
const inside = (what: string, markup: string, args: string) =>
  reply(what, head + markup, { toolCalls: [f(args)] });

/** A call with these parameters, and the arguments it gives. */
const whole = (what: string, parameters: readonly string[], args: string) =>
  inside(what, parameters.join("") + closing, args);

/** A call that the reply's end cuts, and the arguments it gives. */
const cut = (what: string, markup: string, args: string) => ({
  ...inside(what, markup, args),
  callsEnded: 0,
});

const texts: readonly ReplyCase[] = [
  reply("nothing", "", {}),
  asWritten("white space", " \n"),
  asWritten("content", "One\n\n two </think> <think>\n"),
  asWritten("a think block behind text", "No <think>x</think>"),
  asWritten("an unfinished start", " \n<thin"),
  reply("a think block", "\n<think>\n\nHm.\n So\n</think>\n\n Yes\n", {
    reasoning: "Hm.\n So",
    content: " Yes\n",
  }),
  reply("a think block that isn't closed", "\nHm.\nSo\n", { reasoning: "Hm.\nSo" }, thinking),
  reply("half a closing tag", "Hm.</thi", { reasoning: "Hm.</thi" }, thinking),
  reply(
    "a tag in a think block",
    "the <tool_call> tag\n</think>\nOk",
    { reasoning: "the <tool_call> tag", content: "Ok" },
    thinking,
  ),
  reply(
    "half a call in a think block",
    "a\n<tool_call>\n<function=f",
    { reasoning: "a\n<tool_call>\n<function=f" },
    thinking,
  ),
  reply(
    "an opening at a think block's end",
    "a\n<tool_call>\n</think>\nb",
    { reasoning: "a\n<tool_call>", content: "b" },
    thinking,
  ),
  reply(
    "half a call at a think block's end",
    "a\n<tool_call>\n<function=f</think>\nb",
    { reasoning: "a\n<tool_call>\n<function=f", content: "b" },
    thinking,
  ),
];

const calls: readonly ReplyCase[] = [
  reply("a call between texts", `Look:\n\n${now}\n\nDone.\n`, {
    content: "Look:\n\nDone.\n",
    toolCalls: [nowCall],
  }),
  reply("several calls", ` \n${now}\n ${now}And${now}\n`, {
    content: "And",
    toolCalls: [nowCall, nowCall, nowCall],
  }),
  reply(
    "a call in a think block",
    `Hm.\n\n${head}${given("s", "Oslo")}${closing} so </think> ok`,
    { reasoning: "Hm.", content: " so </think> ok", toolCalls: [f('{"s":"Oslo"}')] },
    thinking,
  ),
  reply(
    "a tool that wasn't offered",
    `<tool_call>\n<function=g>\n${given("s", "1")}${given("i", "2")}${closing}`,
    { toolCalls: [{ name: "g", arguments: '{"s":"1","i":"2"}' }] },
  ),
  reply("no white space", `${bare}</tool_call>`, { toolCalls: [f()] }),
  reply("no tools", `Hm.\n</think>\n${now}`, { reasoning: "Hm.", content: now }, noTools),
  reply("one call", `a ${now} b ${now}`, { content: "a", toolCalls: [nowCall] }, oneCall),
  reply("one call without its end", `${bare} b ${now}`, { toolCalls: [f()] }, oneCall),
];

const values: readonly ReplyCase[] = [
  whole(
    "one of each type",
    [given("s", "5"), given("i", "5"), given("b", "True"), given("n", "None")],
    '{"s":"5","i":5,"b":true,"n":null}',
  ),
  whole("an object", [given("o", '{"é": ["}",\n7]}')], '{"o":{"é": ["}",\n7]}}'),
  whole("a string that may be null", [given("n", "Nonesuch")], '{"n":"Nonesuch"}'),
  whole("no fit", [given("i", "few"), given("o", "[")], '{"i":"few","o":"["}'),
  whole("an unknown parameter", [given("x", "[5]")], '{"x":"[5]"}'),
  whole(
    "empty values",
    [given("s", ""), "<parameter=x></parameter>", given("i", "")],
    '{"s":"","x":"","i":""}',
  ),
  whole("newlines", [given("s", "\n a \n\n")], '{"s":"\\n a \\n\\n"}'),
  whole("escapes", [given("s", '"\\\t"\r\u0001')], '{"s":"\\"\\\\\\t\\"\\r\\u0001"}'),
  whole(
    "astral characters",
    [given("s", "😀é😀"), given("😀", "𝄞\n")],
    '{"s":"😀é😀","😀":"𝄞\\n"}',
  ),
  whole(
    "look-alikes of the closing tag",
    [given("s", "</p></parameter\n</parameter >\n</")],
    '{"s":"</p></parameter\\n</parameter >\\n</"}',
  ),
  whole(
    "markup in a value",
    [given("s", "<tool_call>x</function></tool_call><parameter=")],
    '{"s":"<tool_call>x</function></tool_call><parameter="}',
  ),
  whole(
    "half of what ends a value",
    [given("s", "\n<parameter\n</function>\n</tool_")],
    '{"s":"\\n<parameter\\n</function>\\n</tool_"}',
  ),
  whole(
    "names twice",
    [given("s", "a"), given("i", "1"), given("s", "b"), given("i", "2")],
    '{"s":"a","i":1}',
  ),
];

const mended: readonly ReplyCase[] = [
  whole(
    "a value without its closing tag",
    ["<parameter=s>\nx\n<parameter=i>\n3\n</parameter>"],
    '{"s":"x","i":3}',
  ),
  whole("a last value without it", ["<parameter=s>\nx\n"], '{"s":"x"}'),
  inside("no </function>", `${given("s", "x")}</tool_call>`, '{"s":"x"}'),
  whole(
    "text between parameters",
    [given("s", "x"), "so <param </x>\n", given("i", "3"), "and"],
    '{"s":"x","i":3}',
  ),
  whole("no name", ["<parameter= >x</parameter>", given("i", "3")], '{"i":3}'),
  whole("a name cut by a line", ["<parameter=s\n>x</parameter>", given("i", "3")], '{"i":3}'),
  whole("a name cut by a tag", ["<parameter=s<parameter=i>3</parameter>"], '{"i":3}'),
  whole("a name cut by the end", ["<parameter=s"], "{}"),
  reply("no </tool_call>", `${bare}\n`, { toolCalls: [f()] }),
  reply("half of </tool_call>", `${bare}\n</tool_c`, { toolCalls: [f()] }),
  reply("text in place of </tool_call>", `${bare}\n</tool and</tool_call>`, {
    content: "\n</tool and</tool_call>",
    toolCalls: [f()],
  }),
  reply("a call in place of </tool_call>", `${bare}\n${now}\n`, { toolCalls: [f(), nowCall] }),
  reply("a call in place of </function>", `${head}${given("s", "x")}so\n${now} b`, {
    content: " b",
    toolCalls: [f('{"s":"x"}'), nowCall],
  }),
  reply("a call behind an opening", `a <tool_call>\n${now}`, {
    content: "a <tool_call>",
    toolCalls: [nowCall],
  }),
  reply("a call behind half of one", `a <tool_call>\n<${now}`, {
    content: "a <tool_call>\n<",
    toolCalls: [nowCall],
  }),
];

const noCalls: readonly ReplyCase[] = [
  asWritten("prose in place of the function", "<tool_call>\nhello</tool_call>"),
  asWritten("JSON in place of the function", 'a\n<tool_call>\n{"name": "f"}\n</tool_call>\n'),
  asWritten("a nameless function", "<tool_call>\n<function= >\n</function>\n</tool_call>"),
  asWritten("a function cut by a line", "<tool_call>\n<function=wea\nther>\n</function>"),
  asWritten("a function cut by a tag", "<tool_call>\n<function=f</function>\n</tool_call>"),
  asWritten("a malformed parameter", `${head}<parameter s>x</parameter>`),
  asWritten("text behind the head", `${head}x${closing}`),
  asWritten("no parameter and no </function>", `${head}</tool_call>`),
  asWritten("half an opening", "So:\n\n<tool_c"),
  asWritten("an opening", "<tool_call>\n"),
  asWritten("half a function", "a \n<tool_call>\n<func"),
  asWritten("half a name", "<tool_call>\n<function=f"),
  asWritten("half a head", `${head}\n</func`),
];

const unfinished: readonly ReplyCase[] = [
  cut("half a parameter's name", "<parameter=s", "{"),
  cut("a value that hasn't begun", "<parameter=s>\n", '{"s":"'),
  cut("half a string", "<parameter=s>\nab\n\n c\n", '{"s":"ab\\n\\n c'),
  cut("half a character", "<parameter=s>\na\ud83d", '{"s":"a'),
  cut("half a parameter's closing tag", "<parameter=s>\nab\n</param", '{"s":"ab'),
  cut("half a number", "<parameter=i>\n12", '{"i":'),
  cut("nothing behind a value", given("i", "12"), '{"i":12'),
  cut("half a value that is skipped", `${given("i", "1")}<parameter=i>\n2`, '{"i":1'),
  cut("half a tag between parameters", `${given("s", "")}and </tool_cal`, '{"s":""'),
  cut("half of the last tags", "<parameter=s>\nx\n</function>\n</tool", '{"s":"x'),
  {
    ...reply("half a second call", `${now} b ${head}<parameter=`, {
      content: " b",
      toolCalls: [nowCall, f("{")],
    }),
    callsEnded: 1,
  },
];

export const replyCases: readonly ReplyCase[] = [
  ...texts,
  ...calls,
  ...values,
  ...mended,
  ...noCalls,
  ...unfinished,
];

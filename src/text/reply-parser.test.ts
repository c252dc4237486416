import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  joinEvents,
  type ParsedReply,
  parseReply,
  ReplyParser,
  type ReplyParserOptions,
} from "./reply-parser.ts";
import type { ToolSpec } from "./tool-calls.ts";

const weather: ToolSpec = {
  type: "function",
  function: {
    name: "weather",
    parameters: { properties: { city: { type: "string" }, days: { type: "integer" } } },
  },
};
const open: ReplyParserOptions = { reasoningOpen: true, tools: [weather] };
const closed: ReplyParserOptions = { reasoningOpen: false, tools: [weather] };

function written(city: string, more = ""): string {
  const parameter = `<parameter=city>\n${city}\n</parameter>\n${more}`;
  return `<tool_call>\n<function=weather>\n${parameter}</function>\n</tool_call>`;
}

const oslo = { name: "weather", arguments: '{"city":"Oslo"}' };
const rome = { name: "weather", arguments: '{"city":"Rome"}' };

function reply(content: string, toolCalls: ParsedReply["toolCalls"] = [], reasoning = "") {
  return { reasoning, content, toolCalls };
}

describe("reasoning", () => {
  test("ends at </think>; the newlines around the markers go", () => {
    expect(parseReply("\n\nHm.\n\nSo.\n</think>\n\n  Yes.\n", open)).toEqual(
      reply("  Yes.\n", [], "Hm.\n\nSo."),
    );
  });

  test("is everything when it never ends", () => {
    expect(parseReply("Hm.\nSo\n", open)).toEqual(reply("", [], "Hm.\nSo"));
    expect(parseReply("Hm.</thi", open)).toEqual(reply("", [], "Hm.</thi"));
  });

  test("may open at the reply's start, and only there", () => {
    expect(parseReply(" \n<think>\nHm.\n</think>\n\nYes.", closed)).toEqual(
      reply("Yes.", [], "Hm."),
    );
    expect(parseReply("No <think>x</think>", closed)).toEqual(reply("No <think>x</think>"));
    expect(parseReply("<thin", closed)).toEqual(reply("<thin"));
  });

  test("is ended by a call", () => {
    expect(parseReply(`Hm.\n\n${written("Oslo")}\nDone.`, open)).toEqual(
      reply("\nDone.", [oslo], "Hm."),
    );
  });

  test("keeps markup that is no call", () => {
    expect(parseReply("the <tool_call> tag\n</think>\nOk", open)).toEqual(
      reply("Ok", [], "the <tool_call> tag"),
    );
    expect(parseReply("a\n<tool_call>\n<function=w", open)).toEqual(
      reply("", [], "a\n<tool_call>\n<function=w"),
    );
  });
});

describe("calls", () => {
  test("several, with white space around them that is no content", () => {
    const text = `\n${written("Oslo")}\n \n${written("Rome")}\n`;
    expect(parseReply(text, closed)).toEqual(reply("", [oslo, rome]));
    expect(parseReply(written("Oslo") + written("Rome"), closed)).toEqual(reply("", [oslo, rome]));
  });

  test("content before, between and after", () => {
    const text = `Let me look.\n\n${written("Oslo")}\nAnd\n${written("Rome")}\nDone.\n`;
    expect(parseReply(text, closed)).toEqual(reply("Let me look.\nAnd\nDone.\n", [oslo, rome]));
  });

  test("values keep inner newlines, quotes, braces and markup", () => {
    const city = '\n  "a" }\n</tool_call><function=x>\n<parameter\n';
    const [call] = parseReply(written(city), closed).toolCalls;
    expect(JSON.parse(call!.arguments)).toEqual({ city });
  });

  test("types come from the schema, and to a tool not offered all are strings", () => {
    const days = "<parameter=days>\n3\n</parameter>\n";
    expect(parseReply(written("7", days), closed).toolCalls[0]!.arguments).toBe(
      '{"city":"7","days":3}',
    );
    const other = written("7", days).replace("weather", "other");
    expect(parseReply(other, closed).toolCalls).toEqual([
      { name: "other", arguments: '{"city":"7","days":"3"}' },
    ]);
  });

  test("no parameters", () => {
    const text = "<tool_call><function=now></function></tool_call>";
    expect(parseReply(text, closed)).toEqual(reply("", [{ name: "now", arguments: "{}" }]));
  });

  test("a forgotten closing tag is made good", () => {
    const next = "<parameter=city>\nOslo\n<parameter=days>\n3\n</parameter>\n";
    const text = `<tool_call>\n<function=weather>\n${next}</function>\n</tool_call>`;
    const both = { name: "weather", arguments: '{"city":"Oslo","days":3}' };
    expect(parseReply(text, closed)).toEqual(reply("", [both]));
    expect(parseReply(written("Oslo").replace("</parameter>\n", ""), closed)).toEqual(
      reply("", [oslo]),
    );
    expect(parseReply(written("Oslo").replace("</tool_call>", ""), closed)).toEqual(
      reply("", [oslo]),
    );
  });

  test.each([
    ["prose in place of the function", "<tool_call>\nhello</tool_call>"],
    ["JSON in place of the function", '<tool_call>\n{"name": "weather"}\n</tool_call>'],
    ["a nameless function", "<tool_call>\n<function=>\n</function>\n</tool_call>"],
    ["a function cut by a line", "<tool_call>\n<function=wea\nther>\n</function></tool_call>"],
    ["a malformed parameter", "<tool_call>\n<function=f>\n<parameter name=a>x</parameter>"],
    ["a parameter without a name", "<tool_call>\n<function=f>\n<parameter= >x</parameter>"],
    ["text after the function", "<tool_call>\n<function=f>\n</function>\nand</tool_call>"],
    ["an unclosed value", "a \n<tool_call>\n<function=f>\n<parameter=a>\nx\n</param"],
    ["an unfinished tag", "<tool_call>\n<func"],
    ["an unfinished opening", "So:\n\n<tool_c"],
    ["a bare opening", "<tool_call>\n"],
  ])("%s is content as written", (_, text) => {
    expect(parseReply(text, closed)).toEqual(reply(text));
  });

  test("a whole call after a broken one is a call", () => {
    const text = `<tool_call>\n${written("Oslo")}`;
    expect(parseReply(text, closed)).toEqual(reply("<tool_call>", [oslo]));
  });

  test("without tools, markup is content", () => {
    const none = { reasoningOpen: true, tools: null };
    expect(parseReply(`Hm.</think>${written("Oslo")}`, none)).toEqual(
      reply(written("Oslo"), [], "Hm."),
    );
  });
});

test("content that is only white space stays", () => {
  expect(parseReply(" \n", closed)).toEqual(reply(" \n"));
  expect(parseReply("", closed)).toEqual(reply(""));
});

test("events come as soon as they are settled", () => {
  const parser = new ReplyParser(open);
  expect(parser.push("Hm\n")).toEqual([{ type: "reasoning", text: "Hm" }]);
  expect(parser.push("so</th")).toEqual([{ type: "reasoning", text: "\nso" }]);
  expect(parser.push("ink>\nYes ")).toEqual([{ type: "content", text: "Yes" }]);
  expect(parser.push("and")).toEqual([{ type: "content", text: " and" }]);
  expect(parser.push(`\n${written("Oslo")}`)).toEqual([{ type: "toolCall", ...oslo }]);
  expect(parser.end()).toEqual([]);
});

const replies = [
  `Hm.\n\nI look.\n</think>\n\nLet me see.\n${written("Oslo")}\n${written("Rome")}\n`,
  `<think>\n\n</think>\n\n${written('é😀 "x"</tool_call>', "<parameter=days>\nTrue\n</parameter>")}`,
  `\n<think>a <tool_call> b\n\n${written("Oslo")} c </think> d\n`,
  `x <tool_call>\n<function=f>\n<parameter=a>\n1\n<parameter=b>\n2\n</function>\n</tool_call> \n`,
  `<tool_call>\n<function=f>\n</function>\n<tool_call>\n<function=g>\n</function>\n</tool_call>`,
  "plain\n\n text </think> <think> \n",
];
const fragments = [
  ...["<think>", "</think>", "<tool_call>", "</tool_call>", "<function=", "</function>", ">"],
  ...["<parameter=", "</parameter>", "\n", " ", "<", "a", "city", "\r\n", "weather>"],
];

/** A hand-written reply with pieces cut out and fragments put in, or fragments alone. */
const anyReply = fc.oneof(
  fc.constantFrom(...replies),
  fc
    .tuple(
      fc.constantFrom(...replies),
      fc.array(fc.tuple(fc.nat(300), fc.nat(8), fc.constantFrom("", ...fragments)), {
        maxLength: 5,
      }),
    )
    .map(([text, edits]) => {
      const edit = (from: string, [at, cut, put]: [number, number, string]) =>
        from.slice(0, at) + put + from.slice(at + cut);
      return edits.reduce(edit, text);
    }),
  fc.array(fc.constantFrom(...fragments), { maxLength: 30 }).map((parts) => parts.join("")),
);
const anyOptions = fc.record({
  reasoningOpen: fc.boolean(),
  tools: fc.constantFrom(null, [weather]),
});

function inPieces(text: string, cuts: readonly number[], options: ReplyParserOptions) {
  const parser = new ReplyParser(options);
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  const events = [0, ...places].flatMap((from, i) => parser.push(text.slice(from, places[i])));
  return joinEvents([...events, ...parser.end()]);
}

test("the result is the same at every chunking", () => {
  fc.assert(
    fc.property(anyReply, anyOptions, fc.array(fc.nat(1000)), (text, options, cuts) => {
      const whole = parseReply(text, options);
      expect(inPieces(text, cuts, options)).toEqual(whole);
      const units = text.split("").map((_, at) => at);
      expect(inPieces(text, units, options)).toEqual(whole);
      for (const call of whole.toolCalls) JSON.parse(call.arguments);
    }),
    { numRuns: 1500 },
  );
});

test("without think blocks and calls nothing of the text is lost or moved", () => {
  fc.assert(
    fc.property(anyReply, (text) => {
      const { content, toolCalls, reasoning } = parseReply(text, closed);
      fc.pre(toolCalls.length === 0 && reasoning === "" && !text.trimStart().startsWith("<think>"));
      expect(content).toBe(text);
    }),
  );
});

test("a long argument and many openings take linear time", () => {
  const parser = new ReplyParser(closed);
  parser.push("<tool_call>\n<function=weather>\n<parameter=city>\n");
  for (let i = 0; i < 100_000; i++) parser.push("<par");
  const [call] = parser.push("\n</parameter>\n</function>\n</tool_call>");
  expect(call).toMatchObject({ type: "toolCall", name: "weather" });
  const openings = "<tool_call>\n<function=a>\n<parameter=b>\n".repeat(20_000);
  expect(parseReply(openings, closed).content.length).toBe(openings.length);
});

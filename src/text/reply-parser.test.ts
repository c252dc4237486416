import fc from "fast-check";
import { expect, test } from "vitest";
import { replyCases } from "./replies.cases.ts";
import { joinParts, parseReply, ReplyParser, type ReplyParserOptions } from "./reply-parser.ts";
import type { ToolSpec } from "./tool-calls.ts";

const weather: ToolSpec = {
  type: "function",
  function: {
    name: "weather",
    parameters: { properties: { city: { type: "string" }, days: { type: "integer" } } },
  },
};
const closed: ReplyParserOptions = { reasoningOpen: false, tools: [weather], oneCall: false };
const open: ReplyParserOptions = { ...closed, reasoningOpen: true };

const head = "<tool_call>\n<function=weather>\n";
const written = (city: string, more = "") =>
  `${head}<parameter=city>\n${city}\n</parameter>\n${more}</function>\n</tool_call>`;

test.each(replyCases)("$what", ({ text, options, reasoning, content, toolCalls }) => {
  expect(parseReply(text, options)).toEqual({ reasoning, content, toolCalls });
});

test("events come as soon as they are settled", () => {
  const parser = new ReplyParser(open);
  expect(parser.push("Hm\n")).toEqual([{ type: "reasoning", text: "Hm" }]);
  expect(parser.push("so</th")).toEqual([{ type: "reasoning", text: "\nso" }]);
  expect(parser.push("ink>\nYes ")).toEqual([{ type: "content", text: "Yes" }]);
  expect(parser.push("and")).toEqual([{ type: "content", text: " and" }]);
  expect(parser.push(`\n${written("Oslo")}\n`)).toEqual([
    { type: "toolCall", name: "weather" },
    { type: "toolArguments", text: '{"city":"Oslo"}' },
  ]);
  expect(parser.end()).toEqual([]);
});

test("a call is told once its head is there, and its arguments as they are written", () => {
  const parser = new ReplyParser(open);
  const argued = (text: string) => [{ type: "toolArguments", text }];
  expect(parser.push("Hm\n\n<tool_call>\n<function=weather>\n<parameter")).toEqual([
    { type: "reasoning", text: "Hm" },
  ]);
  expect(parser.inReasoning).toBe(true);
  expect(parser.push("=")).toEqual([{ type: "toolCall", name: "weather" }, ...argued("{")]);
  expect(parser.inReasoning).toBe(false);
  expect(parser.push("city")).toEqual([]);
  expect(parser.push(">")).toEqual(argued('"city":"'));
  expect(parser.push("\n")).toEqual([]);
  expect(parser.push('St. "John')).toEqual(argued('St. \\"John'));
  expect(parser.push("'s\n</par")).toEqual(argued("'s"));
  expect(parser.push("t>\n")).toEqual(argued("\\n</part>"));
  expect(parser.push("</parameter>")).toEqual(argued('"'));
  expect(parser.push("\n<parameter=days>\n1")).toEqual(argued(',"days":'));
  expect(parser.push("2\n</parameter>\n")).toEqual(argued("12"));
  expect(parser.push("</function>")).toEqual(argued("}"));
  expect(parser.callsEnded).toBe(0);
  expect(parser.push("\n</tool_call>")).toEqual([]);
  expect(parser.callsEnded).toBe(1);
  expect(parser.push("\nok\n")).toEqual([{ type: "content", text: "\nok" }]);
  expect(parser.end()).toEqual([{ type: "content", text: "\n" }]);
});

test("a long string comes piece by piece", () => {
  const parser = new ReplyParser(closed);
  parser.push(`${head}<parameter=city>\n`);
  const words = Array.from({ length: 50 }, (_, at) => `word ${at} `);
  for (const word of words) {
    expect(parser.push(word)).toEqual([{ type: "toolArguments", text: word }]);
  }
});

test("a parser of one call reads nothing behind it, where it has an end or not", () => {
  for (const end of ["</tool_call>", ""]) {
    const parser = new ReplyParser({ ...closed, oneCall: true });
    parser.push(`a ${written("Oslo").replace("</tool_call>", end)}`);
    expect([parser.ended, parser.callsEnded]).toEqual(end === "" ? [false, 0] : [true, 1]);
    expect(parser.push(` b ${written("Rome")} c`)).toEqual([]);
    expect([parser.ended, parser.callsEnded]).toEqual([true, 1]);
    expect(parser.end()).toEqual([]);
  }
});

const fragments = [
  ...["<think>", "</think>", "<tool_call>", "</tool_call>", "<function=", "</function>", ">"],
  ...["<parameter=", "</parameter>", "\n", " ", "<", "a", "city", "\r\n", "weather>", "😀"],
  ...["<parameter=days>\n", "True", `${head}<parameter=city>\n`],
];
const replies = [
  ...replyCases.map(({ text }) => text),
  `Hm.\n\nI look.\n</think>\n\nLet me see.\n${written("Oslo")}\n${written("Rome")}\n`,
  `<think>\n\n</think>\n\n${written('é😀 "x"</tool_call>', "<parameter=days>\n7\n</parameter>")}`,
];

/** A hand-written reply with pieces cut out and fragments put in, or fragments alone. */
const anyReply = fc.oneof(
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
  oneCall: fc.boolean(),
});

function inPieces(text: string, cuts: readonly number[], options: ReplyParserOptions) {
  const parser = new ReplyParser(options);
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  const events = [0, ...places].flatMap((from, i) => parser.push(text.slice(from, places[i])));
  const reply = joinParts([...events, ...parser.end()]);
  return { ...reply, callsEnded: parser.callsEnded };
}

test("the result is the same at every chunking, and only a last call is not ended", () => {
  fc.assert(
    fc.property(anyReply, anyOptions, fc.array(fc.nat(1000)), (text, options, cuts) => {
      const whole = inPieces(text, [], options);
      expect(inPieces(text, cuts, options)).toEqual(whole);
      const units = text.split("").map((_, at) => at);
      expect(inPieces(text, units, options)).toEqual(whole);
      const { toolCalls, callsEnded } = whole;
      for (const call of toolCalls.slice(0, callsEnded)) JSON.parse(call.arguments);
      expect(toolCalls.length - callsEnded).toBeLessThan(2);
      if (options.oneCall) expect(toolCalls.length).toBeLessThan(2);
      for (const { arguments: unclosed } of toolCalls.slice(callsEnded)) {
        expect(() => JSON.parse(unclosed)).toThrow(SyntaxError);
      }
    }),
    { numRuns: 3000, seed: 6 },
  );
});

test("without think blocks and calls nothing of the text is lost or moved", () => {
  fc.assert(
    fc.property(anyReply, (text) => {
      const { content, toolCalls, reasoning } = parseReply(text, closed);
      fc.pre(toolCalls.length === 0 && reasoning === "" && !text.trimStart().startsWith("<think>"));
      expect(content).toBe(text);
    }),
    { numRuns: 300, seed: 6 },
  );
});

test("a long argument in many pieces takes linear time", () => {
  const parser = new ReplyParser(closed);
  parser.push(`${head}<parameter=city>\n`);
  const events = Array.from({ length: 100_000 }, () => parser.push("<par")).flat();
  events.push(...parser.push("\n</parameter>"));
  expect(joinParts([{ type: "toolCall", name: "" }, ...events]).toolCalls[0]!.arguments).toBe(
    `${"<par".repeat(100_000)}"`,
  );
});

test.each([
  ["openings in a value", "<tool_call><function=a><parameter=b>"],
  ["broken heads", "<tool_call> <x"],
  ["heads broken late", "<tool_call>\n<function=aaaaaaaaaaaaaaaaaaaaaaa>\n<par "],
  ["calls without an end", "<tool_call><function=a></function></tool"],
  ["calls in calls", "<tool_call><function=a><parameter=b>c</parameter>"],
  ["white space", "<tool_call>          "],
  ["newlines in a value", "<tool_call><function=a><parameter=b>\n\n\n\n\n\n\n\n\n"],
])("%s, a megabyte at once, take linear time", (_, part) => {
  const text = part.repeat(1_000_000 / part.length);
  const { content, toolCalls } = parseReply(text, closed);
  const length = toolCalls.reduce((sum, call) => sum + call.arguments.length, content.length);
  expect(length).toBeGreaterThan(100_000);
});

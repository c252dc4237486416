import { expect, test } from "vitest";
import { ArgumentsWriter } from "./arguments-writer.ts";
import { argumentTypes } from "./tool-calls.ts";

const properties = {
  text: { type: "string" },
  count: { type: "integer" },
  list: { type: "array" },
  maybe: { type: ["string", "null"] },
};
const types = argumentTypes(
  [{ type: "function", function: { name: "f", parameters: { properties } } }],
  "f",
);

type Written = readonly [key: string, text: string];

/** The arguments of parameters whose values come in pieces of `units` UTF-16 units. */
function written(parameters: readonly Written[], units: number): string {
  const writer = new ArgumentsWriter(types);
  let json = "{";
  for (const [key, text] of parameters) {
    json += writer.begin(key);
    for (let at = 0; at < text.length; at += units) json += writer.push(text.slice(at, at + units));
    json += writer.push("") + writer.end();
  }
  return `${json}}`;
}

test.each<readonly [Written[], string]>([
  [[], "{}"],
  [[["text", ""]], '{"text":""}'],
  [[["text", "\n"]], '{"text":""}'],
  [[["text", "\n\n"]], '{"text":""}'],
  [[["text", "\n\n\n"]], '{"text":"\\n"}'],
  [[["text", "a"]], '{"text":"a"}'],
  [[["text", "\n\n a \n\n"]], '{"text":"\\n a \\n"}'],
  [[["text", "\na\n\n\nb\n"]], '{"text":"a\\n\\n\\nb"}'],
  [[["text", '\r\n\t\u0000\u2028"\\\r\n']], '{"text":"\\r\\n\\t\\u0000\u2028\\"\\\\\\r"}'],
  [[["text", "\n😀é😀😀\n"]], '{"text":"😀é😀😀"}'],
  [[["text", "\n\ud83d\n"]], '{"text":"\\ud83d"}'],
  [[["text", "\ude00\ud83d\ud83d\ude00"]], '{"text":"\\ude00\\ud83d😀"}'],
  [[["count", "\n 42 \n"]], '{"count":42}'],
  [[["count", "\n4\n2\n"]], '{"count":"4\\n2"}'],
  [[["count", ""]], '{"count":""}'],
  [[["list", '\n["😀",\n 2]\n']], '{"list":["😀",\n 2]}'],
  [[["maybe", "\nNone\n"]], '{"maybe":null}'],
  [[["maybe", "\nNone of them\n"]], '{"maybe":"None of them"}'],
  [[["unknown", "\n5\n"]], '{"unknown":"5"}'],
  [
    [
      ["count", "1"],
      ["text", "2"],
      ["count", "3"],
      ["text", "4"],
      ["list", "[5]"],
    ],
    '{"count":1,"text":"2","list":[5]}',
  ],
  [
    [
      ["10", "a"],
      ["__proto__", "b"],
      ["constructor", "c"],
      ['"\\😀', "d"],
      ["__proto__", "e"],
    ],
    '{"10":"a","__proto__":"b","constructor":"c","\\"\\\\😀":"d"}',
  ],
])("%j: %s, however it comes", (parameters, expected) => {
  for (const units of [1, 2, 3, 5, 1000]) expect(written(parameters, units)).toBe(expected);
  JSON.parse(expected);
});

test("a string is written as it arrives, and a value that may be anything else at its end", () => {
  const writer = new ArgumentsWriter(types);
  expect(writer.begin("text")).toBe('"text":"');
  expect(writer.push("\n")).toBe("");
  expect(writer.push("one ")).toBe("one ");
  expect(writer.push("two\n\ud83d")).toBe("two");
  expect(writer.push('\ude00"\n')).toBe('\\n😀\\"');
  expect(writer.end()).toBe('"');
  expect(writer.begin("count")).toBe(',"count":');
  expect(writer.push("4")).toBe("");
  expect(writer.push("2\n")).toBe("");
  expect(writer.end()).toBe("42");
  expect(writer.begin("text")).toBe("");
  expect(writer.push("again")).toBe("");
  expect(writer.end()).toBe("");
});

import { expect, test } from "vitest";
import { argumentJson, argumentTypes, isAlwaysString, type ToolSpec } from "./tool-calls.ts";

function tool(properties: unknown, more: object = {}): ToolSpec {
  return { type: "function", function: { name: "f", parameters: { properties, ...more } } };
}

/** The JSON that one argument of the given schema becomes. */
function typed(schema: unknown, text: string, more: object = {}): string {
  const types = argumentTypes([tool({ a: schema }, more)], "f")("a");
  const json = argumentJson(text, types);
  expect(typeof JSON.parse(json) === "string" || !isAlwaysString(types)).toBe(true);
  return json;
}

test.each([
  [{ type: "string" }, "42", '"42"'],
  [{ type: "string" }, "null", '"null"'],
  [{ type: "string" }, 'a "quoted"\n}', '"a \\"quoted\\"\\n}"'],
  [{ type: "integer" }, "42", "42"],
  [{ type: "integer" }, " 42 ", "42"],
  [{ type: "integer" }, "12345678901234567890", "12345678901234567890"],
  [{ type: "integer" }, "a few", '"a few"'],
  [{ type: "integer" }, "None", "null"],
  [{ type: "number" }, "-1.50", "-1.50"],
  [{ type: "number" }, "NaN", '"NaN"'],
  [{ type: "number" }, '"7"', '"\\"7\\""'],
  [{ type: "boolean" }, "True", "true"],
  [{ type: "boolean" }, "FALSE", "false"],
  [{ type: "boolean" }, "1", '"1"'],
  [{ type: "null" }, "null", "null"],
  [{ type: "object" }, '{"x": [1, "}"]}', '{"x": [1, "}"]}'],
  [{ type: "object" }, "{'x': 1}", "\"{'x': 1}\""],
  [{ type: "array" }, "[1,\n 2]", "[1,\n 2]"],
  [{ type: "array" }, "", '""'],
  [{ type: ["string", "null"] }, "None", "null"],
  [{ type: ["string", "null"] }, "nothing", '"nothing"'],
  [{ type: ["string", "integer"] }, "5", '"5"'],
  [{ type: ["integer", "boolean"] }, "true", "true"],
  [{ anyOf: [{ type: "string" }, { type: "array" }] }, '["x"]', '["x"]'],
  [{ oneOf: [{ type: "integer" }, { type: "null" }] }, "3", "3"],
  [{ enum: [1, 2] }, "2", "2"],
  [{ enum: ["1", "2"] }, "2", '"2"'],
  [{ const: true }, "true", "true"],
  [{}, "5", '"5"'],
  ["nonsense", "5", '"5"'],
])("%o: %s → %s", (schema, text, expected) => {
  expect(typed(schema, text)).toBe(expected);
});

test("local references are followed, circles too", () => {
  const more = { $defs: { "a/b": { type: "object" }, loop: { $ref: "#/$defs/loop" } } };
  expect(typed({ $ref: "#/$defs/a~1b" }, "{}", more)).toBe("{}");
  expect(typed({ $ref: "#/$defs/loop" }, "5", more)).toBe('"5"');
  expect(typed({ $ref: "#/$defs/missing" }, "5", more)).toBe('"5"');
  expect(typed({ $ref: "https://example.com/x" }, "5", more)).toBe('"5"');
});

test.each([
  [{ type: "string" }, true],
  [{ type: ["string", "integer", "boolean"] }, true],
  [{ enum: ["a", "b"] }, true],
  [{}, true],
  [{ type: ["string", "null"] }, false],
  [{ anyOf: [{ type: "string" }, { type: "object" }] }, false],
  [{ enum: ["a", null] }, false],
  [{ type: "integer" }, false],
])("%o: always a string is %s", (schema, always) => {
  expect(isAlwaysString(argumentTypes([tool({ a: schema })], "f")("a"))).toBe(always);
});

test("of unknown parameters and tools nothing is known, and prototypes are out of reach", () => {
  const bare: ToolSpec = { type: "function", function: { name: "f" } };
  const integer = { type: "integer" };
  expect(argumentTypes([tool({ a: integer })], "f")("b")).toEqual(new Set());
  expect(argumentTypes([tool({ a: integer })], "f")("__proto__")).toEqual(new Set());
  expect(argumentTypes([tool({ a: integer })], "f")("constructor")).toEqual(new Set());
  expect(argumentTypes([tool({ a: integer })], "g")("a")).toEqual(new Set());
  expect(argumentTypes([bare], "f")("a")).toEqual(new Set());
  expect(argumentTypes([tool("nonsense")], "f")("a")).toEqual(new Set());
  expect(argumentTypes([bare, tool({ a: integer })], "f")("a")).toEqual(new Set());
});

test("a schema whose references branch without end is read in bounded work", () => {
  const self = { $ref: "#/properties/city" };
  const city = { anyOf: Array.from({ length: 30 }, () => ({ ...self })) };
  const parameters = { type: "object", properties: { city } };
  const tool = { type: "function" as const, function: { name: "f", parameters } };
  expect(argumentTypes([tool], "f")("city")).toEqual(new Set());
});

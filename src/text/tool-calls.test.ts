import { expect, test } from "vitest";
import { argumentsJson, type ToolSpec } from "./tool-calls.ts";

function tool(properties: unknown, more: object = {}): ToolSpec {
  return { type: "function", function: { name: "f", parameters: { properties, ...more } } };
}

/** The JSON that one argument of the given schema becomes. */
function typed(schema: unknown, text: string, more: object = {}): string {
  const json = argumentsJson([tool({ a: schema }, more)], "f", [["a", text]]);
  JSON.parse(json);
  return json.slice('{"a":'.length, -1);
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

test("unknown parameters and tools give strings", () => {
  expect(argumentsJson([tool({})], "f", [["b", "5"]])).toBe('{"b":"5"}');
  expect(argumentsJson([], "g", [["b", "5"]])).toBe('{"b":"5"}');
  const bare: ToolSpec = { type: "function", function: { name: "f" } };
  expect(argumentsJson([bare], "f", [["b", "5"]])).toBe('{"b":"5"}');
  expect(argumentsJson([bare], "f", [])).toBe("{}");
});

test("names keep their order, the last of two counts, and prototypes are out of reach", () => {
  const parameters = [
    ["z", "1"],
    ["10", "2"],
    ["z", "3"],
    ["__proto__", "4"],
    ["constructor", "5"],
  ] as const;
  const json = argumentsJson([tool({ z: { type: "integer" } })], "f", parameters);
  expect(json).toBe('{"z":3,"10":"2","__proto__":"4","constructor":"5"}');
});

test("a schema whose references branch without end is read in bounded work", () => {
  const self = { $ref: "#/properties/city" };
  const city = { anyOf: Array.from({ length: 30 }, () => ({ ...self })) };
  const parameters = { type: "object", properties: { city } };
  const tool = { type: "function" as const, function: { name: "f", parameters } };
  expect(argumentsJson([tool], "f", [["city", "5"]])).toBe('{"city":"5"}');
});

import { afterAll, expect, test } from "vitest";
import type { GrammarSpec } from "../engine.ts";
import { InputError } from "../errors.ts";
import { endServers, testServer } from "./engine.cases.ts";
import { parseForm } from "./grammar-fields.ts";
import { chatPath, expectError, hello, textPath } from "./http.cases.ts";
import { responsesPath } from "./responses.cases.ts";

const schema = { type: "object", properties: { city: { type: "string" } } };
const jsonSchema: GrammarSpec = { kind: "jsonSchema", schema };
const named = { name: "place", schema, strict: true };

test.each<[body: Record<string, unknown>, spec: GrammarSpec | null]>([
  [{}, null],
  [{ response_format: null, guided_json: null, structured_outputs: null }, null],
  [{ response_format: { type: "text" } }, null],
  [{ structured_outputs: {}, guided_choice: [], guided_regex: "", grammar: "" }, null],
  [{ structured_outputs: { json_object: false } }, null],
  [{ response_format: { type: "json_object" } }, { kind: "jsonObject" }],
  [{ response_format: { type: "json_schema", json_schema: named } }, jsonSchema],
  [{ response_format: { type: "json_object", schema } }, jsonSchema],
  [{ response_format: { type: "json_object", schema: null } }, { kind: "jsonObject" }],
  [{ json_schema: schema }, jsonSchema],
  [{ guided_json: schema }, jsonSchema],
  [{ guided_json: JSON.stringify(schema) }, jsonSchema],
  [{ guided_json: true }, { kind: "jsonSchema", schema: true }],
  [{ structured_outputs: { json: schema } }, jsonSchema],
  [{ structured_outputs: { json: "false" } }, { kind: "jsonSchema", schema: false }],
  [{ structured_outputs: { json_object: true } }, { kind: "jsonObject" }],
  [{ guided_regex: "a+" }, { kind: "regex", pattern: "a+" }],
  [{ structured_outputs: { regex: "a+" } }, { kind: "regex", pattern: "a+" }],
  [{ guided_choice: ["yes", "no"] }, { kind: "choice", choices: ["yes", "no"] }],
  [{ structured_outputs: { choice: ["a"] } }, { kind: "choice", choices: ["a"] }],
  [{ guided_grammar: 'root ::= "a"' }, { kind: "ebnf", grammar: 'root ::= "a"' }],
  [{ structured_outputs: { grammar: "root" } }, { kind: "ebnf", grammar: "root" }],
  [{ grammar: "root" }, { kind: "ebnf", grammar: "root" }],
  [
    { response_format: { type: "text" }, guided_regex: "b" },
    { kind: "regex", pattern: "b" },
  ],
])("%j asks for %j", (body, spec) => {
  expect(parseForm(body)?.spec ?? null).toEqual(spec);
});

test.each<[body: Record<string, unknown>, param: string]>([
  [{ response_format: "json" }, "response_format"],
  [{ response_format: {} }, "response_format.type"],
  [{ response_format: { type: "xml" } }, "response_format.type"],
  [{ response_format: { type: "json_schema" } }, "response_format.json_schema"],
  [
    { response_format: { type: "json_schema", json_schema: { schema: 5 } } },
    "response_format.json_schema.schema",
  ],
  [{ response_format: { type: "json_object", schema: "{}" } }, "response_format.schema"],
  [{ json_schema: 5 }, "json_schema"],
  [{ guided_json: 5 }, "guided_json"],
  [{ guided_json: "{" }, "guided_json"],
  [{ guided_json: "5" }, "guided_json"],
  [{ guided_choice: "yes" }, "guided_choice"],
  [{ guided_choice: ["yes", 5] }, "guided_choice[1]"],
  [{ guided_regex: 5 }, "guided_regex"],
  [{ structured_outputs: [] }, "structured_outputs"],
  [{ structured_outputs: { regex: [] } }, "structured_outputs.regex"],
  [{ structured_outputs: { structural_tag: "{}" } }, "structured_outputs.structural_tag"],
  [
    { structured_outputs: { json: {}, whitespace_pattern: " " } },
    "structured_outputs.whitespace_pattern",
  ],
  [
    { structured_outputs: { json: {}, disable_any_whitespace: true } },
    "structured_outputs.disable_any_whitespace",
  ],
  [{ guided_regex: "a", guided_choice: ["a"] }, "guided_choice"],
  [{ response_format: { type: "json_object" }, grammar: "root" }, "grammar"],
  [{ structured_outputs: { regex: "a", choice: ["a"] } }, "structured_outputs.choice"],
])("%j is refused at %s", (body, param) => {
  expect(() => parseForm(body)).toThrow(InputError);
  expect(() => parseForm(body)).toThrow(expect.objectContaining({ param, status: 400 }));
});

const server = testServer();
const { app } = server;
afterAll(() => endServers(server));

const impossible = { enum: [] };
const never = "[^\\s\\S]";
const jsonSchemaFormat = (of: object) => ({ type: "json_schema", json_schema: { schema: of } });
const params: [param: string, fields: object][] = [
  ["response_format", { response_format: jsonSchemaFormat(impossible) }],
  ["structured_outputs.json", { structured_outputs: { json: impossible } }],
  ["structured_outputs.regex", { structured_outputs: { regex: never } }],
  ["structured_outputs.choice", { structured_outputs: { choice: ["\ud800"] } }],
  ["structured_outputs.grammar", { structured_outputs: { grammar: "x" } }],
  ["json_schema", { json_schema: impossible }],
  ["guided_json", { guided_json: impossible }],
  ["guided_regex", { guided_regex: never }],
  ["guided_choice", { guided_choice: ["\ud800"] }],
  ["guided_grammar", { guided_grammar: "x" }],
  ["grammar", { grammar: "x" }],
];

const naming = (param: string) => ({ code: "invalid_value", param, words: "" });

test.each(params)("what can't be held to is %s's fault", async (param, fields) => {
  await expectError(app, chatPath, { messages: hello, ...fields }, 400, naming(param));
  await expectError(app, textPath, { prompt: "a", stream: true, ...fields }, 400, naming(param));
});

/** A name that no call can write. */
const aTool = { name: "a>\nb" };
const aText = { type: "json_schema", name: "a", schema: impossible };

test.each<[what: string, param: string, path: string, body: object]>([
  [
    "a required tool",
    "tool_choice",
    chatPath,
    {
      messages: hello,
      tools: [{ type: "function", function: aTool }],
      tool_choice: "required",
    },
  ],
  [
    "a response's required tool",
    "tool_choice",
    responsesPath,
    { input: "a", tools: [{ type: "function", ...aTool }], tool_choice: "required" },
  ],
  ["a response's format", "text.format", responsesPath, { input: "a", text: { format: aText } }],
  ["a response's regex", "guided_regex", responsesPath, { input: "a", guided_regex: never }],
])("%s is named as %s", async (_, param, path, body) => {
  await expectError(app, path, body, 400, naming(param));
});

test("two forms of a response are named as responses have them", async () => {
  const body = { input: "a", text: { format: aText }, grammar: "x" };
  const words = "grammar can't be together with text.format: a reply has one form.";
  const rule = { code: "invalid_value", param: "grammar", words };
  await expectError(app, responsesPath, body, 400, rule);
});

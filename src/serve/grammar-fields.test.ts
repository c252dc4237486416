import { expect, test } from "vitest";
import type { GrammarSpec } from "../engine.ts";
import { InputError } from "../errors.ts";
import { parseGrammar } from "./grammar-fields.ts";

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
  expect(parseGrammar(body)).toEqual(spec);
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
  [{ guided_json: 5 }, "guided_json"],
  [{ guided_json: "{" }, "guided_json"],
  [{ guided_json: "5" }, "guided_json"],
  [{ guided_choice: "yes" }, "guided_choice"],
  [{ guided_choice: ["yes", 5] }, "guided_choice[1]"],
  [{ guided_regex: 5 }, "guided_regex"],
  [{ structured_outputs: [] }, "structured_outputs"],
  [{ structured_outputs: { regex: [] } }, "structured_outputs.regex"],
  [{ guided_regex: "a", guided_choice: ["a"] }, "guided_choice"],
  [{ response_format: { type: "json_object" }, grammar: "root" }, "grammar"],
  [{ structured_outputs: { regex: "a", choice: ["a"] } }, "structured_outputs.choice"],
])("%j is refused at %s", (body, param) => {
  expect(() => parseGrammar(body)).toThrow(InputError);
  expect(() => parseGrammar(body)).toThrow(expect.objectContaining({ param, status: 400 }));
});

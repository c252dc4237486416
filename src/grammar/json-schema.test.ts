import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { InputError } from "../errors.ts";
import { Chance, follow, grammars, randomText } from "./grammar.cases.ts";

type Schema = Readonly<Record<string, unknown>>;

const person: Schema = {
  type: "object",
  properties: {
    name: { type: "string" },
    age: { type: "integer", minimum: 0, maximum: 130 },
    tags: { type: "array", items: { enum: ["a", "bb", "ccc"] }, minItems: 1, maxItems: 3 },
    home: {
      type: "object",
      properties: { street: { type: ["string", "null"] }, number: { type: "number" } },
      required: ["number"],
      additionalProperties: false,
    },
  },
  required: ["name", "home"],
  additionalProperties: false,
};
const tree: Schema = {
  $ref: "#/$defs/node",
  $defs: {
    node: {
      type: "object",
      properties: {
        value: { type: "boolean" },
        children: { type: "array", items: { $ref: "#/$defs/node" } },
      },
      required: ["value"],
      additionalProperties: false,
    },
  },
};
const shapes: Schema = {
  anyOf: [
    { type: "object", properties: { kind: { const: "dot" } }, required: ["kind"] },
    {
      type: "object",
      properties: { kind: { const: "box" }, sides: { $ref: "#/anyOf/2" } },
      required: ["kind", "sides"],
      additionalProperties: false,
    },
    {
      type: "array",
      prefixItems: [{ type: "integer" }, { type: "null" }],
      items: { type: "number" },
      minItems: 1,
    },
  ],
};
const merged: Schema = {
  allOf: [{ $ref: "#/$defs/named" }, { properties: { id: { minimum: 5 } }, required: ["id"] }],
  type: "object",
  $defs: {
    named: {
      properties: { id: { type: "integer", maximum: 9 }, name: { type: "string", maxLength: 4 } },
    },
  },
};
const strings: Schema = {
  type: "object",
  properties: {
    code: { type: "string", pattern: "^[A-Z]{2}\\d+$" },
    odd: { type: "string", pattern: '["\\\\\\n\\x01<é]' },
    short: { type: "string", minLength: 2, maxLength: 5 },
    when: { type: "string", format: "date-time" },
    ways: { type: "string", pattern: "^a|b$|c" },
  },
  required: ["code", "odd", "short", "when", "ways"],
  additionalProperties: { type: "integer" },
};
const needed: Schema = {
  type: "object",
  required: ["a", "b c"],
  additionalProperties: { type: "number", exclusiveMinimum: 0 },
};
const values: Schema = { enum: ["x", 1, 2.5, null, true, { a: [1, 'é"<'] }, [], "\ud800"] };
const sizes: Schema = {
  type: "array",
  items: { type: "array", items: true, maxItems: 0 },
  minItems: 2,
  maxItems: 4,
};
const older: Schema = { type: "number", minimum: 1, exclusiveMinimum: true, maximum: 2 };

describe("texts of tokens drawn from those allowed", () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allowUnionTypes: true });
  test.each<[string, Schema | boolean]>([
    ["person", person],
    ["tree", tree],
    ["shapes", shapes],
    ["merged", merged],
    ["strings", strings],
    ["needed", needed],
    ["values", values],
    ["sizes", sizes],
    ["anything", true],
    ["nothing said", {}],
    [
      "other members",
      { type: "object", properties: { ab: { type: "null" }, a: { type: "null" }, 'q"': {} } },
    ],
    ["types", { type: ["integer", "boolean", "array"], items: { type: "string" } }],
    ["implied", { properties: { a: { minLength: 3 } }, required: ["a"] }],
  ])("%s: are JSON, and valid", async (_, schema) => {
    const valid = ajv.compile(schema);
    for (let seed = 0; seed < 8; seed++) {
      const reply = await grammars.grammar({ kind: "jsonSchema", schema });
      const text = randomText(reply, new Chance(seed));
      expect(valid(JSON.parse(text)), `${text}: ${JSON.stringify(valid.errors)}`).toBe(true);
    }
  });

  test("are objects where any will do", async () => {
    for (let seed = 0; seed < 8; seed++) {
      const reply = await grammars.grammar({ kind: "jsonObject" });
      const value: unknown = JSON.parse(randomText(reply, new Chance(seed)));
      expect(value).toBeTypeOf("object");
      expect(Array.isArray(value)).toBe(false);
    }
  });
});

const many = (count: number, value: (index: number) => unknown): Schema =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, value(index)]));

/** As Python writes JSON. */
const spaced = (value: unknown): string =>
  JSON.stringify(value, null, 1)
    .replaceAll(/\n */g, " ")
    .replaceAll(/([[{]) | (?=[\]}])/g, "$1");

test.each<[Schema | boolean, unknown]>([
  [person, { name: 'Ann "é" 漢 \\ \n 😀', home: { number: -1.5e3 } }],
  [person, { name: "", age: 130, tags: ["a", "ccc"], home: { street: null, number: 0 } }],
  [tree, { value: true, children: [{ value: false, children: [] }, { value: true }] }],
  [shapes, { kind: "dot", other: [{}, [[]], "x"], kinds: 1 }],
  [shapes, { kind: "box", sides: [1, null, 2.25] }],
  [merged, { id: 7, name: "four", more: {} }],
  [
    strings,
    {
      code: "AB12",
      odd: 'a"b',
      short: "😀😀",
      when: "2024-02-29T23:59:59.5+02:00",
      ways: "aXb",
      x: 12,
    },
  ],
  [needed, { a: 0.001, "b c": 12 }],
  [values, { a: [1, 'é"<'] }],
  [values, "\ud800"],
  [sizes, [[], []]],
  [older, 1.5],
  [true, [1, { a: null }]],
  [{ type: "number" }, -0.5],
  [{ type: "integer" }, -10],
  [
    { properties: many(2000, () => ({ type: "null" })), additionalProperties: false },
    { p7: null, p1999: null },
  ],
  [
    { type: "array", uniqueItems: false, items: { type: "string", maxLength: 60_000 } },
    ["x".repeat(70)],
  ],
])("%j takes %j, however it is spaced", async (schema, value) => {
  const written = [JSON.stringify(value)];
  // What is listed has one text.
  if (schema !== values)
    written.push(JSON.stringify(value, null, 2), JSON.stringify(value, null, "\t"), spaced(value));
  for (const text of written) {
    expect(await follow({ kind: "jsonSchema", schema }, text), text).toBe("taken");
  }
});

test.each<[Schema | boolean, string, string]>([
  [person, '{"age": 1}', "age"],
  [person, '{"name": "x", "age": 131', "1"],
  [person, '{"name": "x", "home": {}', "{}"],
  [person, '{"name": "x",  "home"', " "],
  [person, ' {"name"', " "],
  [person, '{"name" :', '" :'],
  [tree, '{"value": true, "value"', "value"],
  [shapes, "[]", "[]"],
  [shapes, "[1, 2]", " 2"],
  [merged, '{"id": 4', " 4"],
  [merged, '{"id": 7, "name": "fours"', "s"],
  [strings, '{"code": "AB"', '"'],
  [older, "1}", "}"],
  [older, "1", "<|im_end|>"],
  [{ const: 5 }, "6", "6"],
  [{ type: "integer" }, "-0", "0"],
  [{ type: ["integer", "null"], minimum: -5 }, "-0", "0"],
  [{ type: "string" }, '"\n', "\n"],
  [{ type: "string" }, '"\\x', "x"],
  [{ type: "string" }, '"\\ud800"', '"'],
])("%j cuts %s at %j", async (schema, text, refused) => {
  const cut = await follow({ kind: "jsonSchema", schema }, text);
  expect(cut).not.toBe("taken");
  expect(cut.includes(refused) || refused.includes(cut), cut).toBe(true);
});

test.each<[string, Schema | boolean, string]>([
  [
    "a keyword",
    { type: "array", uniqueItems: true },
    'The schema can\'t be used: "uniqueItems" is not supported (at #).',
  ],
  [
    "an inner one",
    { properties: { a: { not: {} } } },
    '"not" is not supported (at #/properties/a)',
  ],
  [
    "patternProperties",
    { patternProperties: { "^a": {} } },
    '"patternProperties" is not supported',
  ],
  ["multipleOf", { anyOf: [{ type: "number", multipleOf: 3 }] }, "(at #/anyOf/0)"],
  ["a type", { type: "text" }, 'there is no type "text"'],
  ["a type of none", { type: ["string", 5] }, "there is no type 5"],
  ["a far reference", { $ref: "https://example.com/a.json" }, "$ref must be local"],
  ["a lost reference", { $ref: "#/$defs/a" }, '$ref names nothing: "#/$defs/a"'],
  ["a prototype", { $ref: "#/constructor/prototype" }, "$ref names nothing"],
  ["a circle", { $ref: "#" }, "No text would have the form"],
  [
    "a circle of many",
    {
      $defs: many(3000, (index) => ({ $ref: `#/$defs/p${(index + 1) % 3000}` })),
      $ref: "#/$defs/p7",
    },
    "No text would have the form",
  ],
  [
    "many names",
    { required: Array.from({ length: 200 }, (_, index) => `${index}`.padEnd(60, "x")) },
    "too many names for others",
  ],
  ["a bad regex", { type: "string", pattern: "(a" }, "The regex has a group that isn't closed"],
  ["two rules", { type: "string", pattern: "a", maxLength: 3 }, "pattern can't be together with"],
  [
    "listed and bounded",
    { enum: [1, 5], maximum: 3 },
    '"maximum" can\'t be together with enum or const',
  ],
  ["nothing", false, "No text would have the form that is asked for."],
  [
    "nothing left",
    { type: "integer", enum: ["a"] },
    "No text would have the form that is asked for.",
  ],
  [
    "endless",
    { type: "object", properties: { a: { $ref: "#" } }, required: ["a"] },
    "No text would have the form",
  ],
  ["a count", { minLength: -1 }, "minLength must be a whole number from 0 on, not -1"],
  ["a great count", { type: "array", minItems: 1e9 }, "minItems can be 10000 at most"],
  ["a bound", { minimum: "1" }, 'minimum must be a number, not "1"'],
  ["properties", { properties: [] }, "properties must be an object of schemas"],
  ["required", { required: ["a", 1] }, "required must be a list of names"],
  [
    "a schema",
    { properties: { a: "string" } },
    'a schema must be an object or a flag, not "string"',
  ],
  ["lists of items", { items: [{}] }, "lists of schemas are prefixItems"],
  ["anyOf", { anyOf: {} }, "anyOf must be a list of schemas"],
  ["allOf", { allOf: [{ const: 1 }, { const: 2 }] }, '"const" is given in two ways'],
  [
    "closed",
    { allOf: [{ properties: { a: {} }, additionalProperties: false }, { properties: { b: {} } }] },
    "additionalProperties can't be",
  ],
  [
    "depth",
    JSON.parse(`${'{"items":'.repeat(70)}{}${"}".repeat(70)}`),
    "nests deeper than 64 levels",
  ],
  ["a long name", { required: ["x".repeat(257)] }, "has more than 256 characters (at #)"],
  ["size", { description: "x".repeat(300_000) }, "262144 are the most"],
  [
    "too many of much",
    { properties: many(100, (index) => ({ type: "string", pattern: `^a{0,${9000 + index}}$` })) },
    "takes more than 100000 instructions",
  ],
  [
    "growing references",
    {
      $defs: {
        a: { anyOf: [{ $ref: "#/$defs/b" }], properties: { x: {} } },
        b: { anyOf: [{ $ref: "#/$defs/a" }], properties: { y: {} } },
      },
      $ref: "#/$defs/a",
    },
    "takes too much work: fewer or smaller schemas, references or repeats would fit",
  ],
])("refuses %s", async (_, schema, message) => {
  const asked = grammars.grammar({ kind: "jsonSchema", schema });
  await expect(asked).rejects.toThrow(InputError);
  await expect(asked).rejects.toThrow(message);
  await expect(asked).rejects.toMatchObject({ param: "response_format", status: 400 });
});

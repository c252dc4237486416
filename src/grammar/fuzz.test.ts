import fc from "fast-check";
import { expect, test } from "vitest";
import { InputError } from "../errors.ts";
import { Chance, grammars, randomText } from "./grammar.cases.ts";
import type { GrammarSpec } from "./spec.ts";

const runs = { numRuns: 400, seed: 12 };

/** Whatever is asked for is refused in plain words, or held to up to an end. */
async function holds(spec: GrammarSpec): Promise<string | null> {
  try {
    const reply = await grammars.grammar(spec);
    return randomText(reply, new Chance(1));
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    expect(error.message).not.toMatch(/\.ts\b|undefined|object Object/);
    return null;
  }
}

const of = (pieces: readonly string[]): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...pieces), { maxLength: 24 }).map((some) => some.join(""));

test("any regex", async () => {
  const pieces = [..."ab|()[]{}^$.*+?-,\\012d", "{2,3}", "(?:", "[^a", "\\d", "\\u00e9", "é", "😀"];
  let held = 0;
  await fc.assert(
    fc.asyncProperty(of(pieces), async (pattern) => {
      if ((await holds({ kind: "regex", pattern })) !== null) held++;
    }),
    runs,
  );
  expect(held).toBeGreaterThan(20);
});

test("any EBNF", async () => {
  const pieces = [
    "root ::= ",
    "\na ::= ",
    "\nb ::= ",
    ' "x" ',
    " a ",
    " b ",
    "|",
    "(",
    ")",
    "*",
    "{1,2}",
    "[a-c]",
    "[^\n]",
    "#\n",
    '"',
    "\\n",
  ];
  let held = 0;
  await fc.assert(
    fc.asyncProperty(of(pieces), async (rest) => {
      const spec = { kind: "ebnf", grammar: `root ::= "." ${rest}` } as const;
      if ((await holds(spec)) !== null) held++;
    }),
    runs,
  );
  expect(held).toBeGreaterThan(20);
});

test("any schema", async () => {
  const { schema } = fc.letrec<{ schema: unknown; value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      tie("schema"),
      fc.constantFrom(
        0,
        1,
        2,
        -1,
        0.5,
        "",
        "a",
        "^a+$",
        "#",
        "#/properties/a",
        "string",
        true,
        false,
        null,
      ),
      fc.constantFrom("object", "array", "integer", "number", "null", "boolean"),
      fc.array(tie("value"), { maxLength: 3 }),
    ),
    schema: fc.oneof(
      { maxDepth: 4 },
      fc.record({ type: fc.constantFrom("object", "array", "string", "integer", "boolean") }),
      fc.record({ pattern: fc.constantFrom("^a+$", "[b-x]", "(", ""), maxLength: tie("value") }),
      fc.dictionary(
        fc.constantFrom(
          ...["type", "properties", "required", "additionalProperties", "items", "prefixItems"],
          ...["minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"],
          ...["exclusiveMinimum", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "a", "b"],
        ),
        tie("value"),
        { maxKeys: 4 },
      ),
    ),
  }));
  let held = 0;
  await fc.assert(
    fc.asyncProperty(schema, async (given) => {
      const text = await holds({ kind: "jsonSchema", schema: given as Record<string, unknown> });
      if (text === null) return;
      JSON.parse(text);
      held++;
    }),
    runs,
  );
  expect(held).toBeGreaterThan(20);
});

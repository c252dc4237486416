import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { parseReply } from "../text/reply-parser.ts";
import type { ToolSpec } from "../text/tool-calls.ts";
import { Chance, follow, grammars, randomText, tokenizer } from "./grammar.cases.ts";

type Schema = Readonly<Record<string, unknown>>;

const tool = (name: string, parameters?: Schema): ToolSpec => ({
  type: "function",
  function: { name, ...(parameters && { parameters }) },
});
const object = (properties: Schema, required: readonly string[] = []): Schema => ({
  type: "object",
  properties,
  required,
});

const tools: readonly ToolSpec[] = [
  tool(
    "get_weather",
    object(
      {
        city: { type: "string" },
        unit: { type: "string", enum: ["celsius", "<f>"] },
        days: { type: "integer", minimum: 1, maximum: 14 },
      },
      ["city", "days"],
    ),
  ),
  tool("noop"),
  tool("get", object({})),
  tool(
    "store",
    object(
      {
        key: { type: "string", minLength: 1, maxLength: 8 },
        code: { type: "string", pattern: "^[^a-z]+$" },
        value: { $ref: "#/$defs/value" },
        flag: { type: "boolean" },
        maybe: { type: ["string", "null"] },
        either: {
          anyOf: [
            { type: "integer" },
            { type: "null" },
            { type: "array", items: { type: "string" } },
          ],
        },
        mixed: {
          type: ["string", "object"],
          properties: { a: { type: "number" } },
          additionalProperties: false,
        },
        anything: {},
        listed: { enum: [1, "a", null] },
        ratio: { type: "number", exclusiveMinimum: 0, maximum: 1 },
      },
      ["key", "code", "value", "flag", "maybe", "either", "mixed", "anything", "listed", "ratio"],
    ),
  ),
];
const defs = {
  $defs: {
    value: {
      type: "object",
      properties: {
        text: { type: "string" },
        "<tag>": { enum: ["</parameter>", 5] },
        inner: { $ref: "#/$defs/value" },
      },
      required: ["text", "<tag>"],
      additionalProperties: false,
    },
  },
};
const withDefs: readonly ToolSpec[] = tools.map(({ function: { name, parameters } }) =>
  tool(name, parameters && { ...parameters, ...defs }),
);
const calls = (of: readonly ToolSpec[], parallel = true) =>
  ({ kind: "calls", tools: of, parallel }) as const;

const ajv = new Ajv2020({ strict: false });
const valid = new Map(
  withDefs.map(({ function: { name, parameters } }) => [name, ajv.compile(parameters ?? {})]),
);

test.each(withDefs.map((each) => [each.function.name, each] as const))(
  "%s: calls of tokens drawn from those allowed are read back, and their arguments are valid",
  async (name, only) => {
    for (let seed = 0; seed < 10; seed++) {
      const reply = await grammars.grammar(calls([only], false));
      const text = randomText(reply, new Chance(seed));
      const parsed = parseReply(text, { reasoningOpen: false, tools: withDefs, oneCall: false });
      expect(parsed).toMatchObject({ reasoning: "", content: "" });
      expect(parsed.toolCalls.map((call) => call.name)).toEqual([name]);
      const given: unknown = JSON.parse(parsed.toolCalls[0]!.arguments);
      const check = valid.get(name)!;
      expect(check(given), `${text}: ${JSON.stringify(check.errors)}`).toBe(true);
      if (name === "noop" || name === "get") expect(given).toEqual({});
    }
  },
);

test("several calls are read back as so many", async () => {
  const counts = new Set<number>();
  for (let seed = 0; seed < 12; seed++) {
    const reply = await grammars.grammar(calls(withDefs.slice(1, 3)));
    const text = randomText(reply, new Chance(seed));
    const parsed = parseReply(text, { reasoningOpen: false, tools: withDefs, oneCall: false });
    expect(parsed.content).toBe("");
    expect(parsed.toolCalls.length).toBe(text.split("<tool_call>").length - 1);
    for (const call of parsed.toolCalls) expect(["noop", "get"]).toContain(call.name);
    counts.add(parsed.toolCalls.length);
  }
  expect(counts.size).toBeGreaterThan(1);
});

const opening = "<tool_call>\n<function=get_weather>\n<parameter=city>\n";
const days = "\n</parameter>\n<parameter=days>\n3\n</parameter>\n";
const closing = "</function>\n</tool_call>";

test.each([
  ["a plain one", `${opening}Paris${days}${closing}`, "taken"],
  [
    "one with markup and lines",
    `${opening}\n<b>a</b>\n\n</function>\n</tool_cal${days}${closing}`,
    "taken",
  ],
  ["one that is empty", `${opening}${days}${closing}`, "taken"],
  ["two", `${opening}Paris${days}${closing}\n${opening}é漢${days}${closing}`, "taken"],
  ["an optional one", `${opening}x\n</parameter>\n<parameter=unit>\n<f>${days}${closing}`, "taken"],
  ["text before", `Sure! ${opening}`, "Sure"],
  ["a space between", `${opening}Paris${days}${closing} `, " "],
  ["another tool", "<tool_call>\n<function=rm", "r"],
  ["another value", `${opening}x\n</parameter>\n<parameter=unit>\nkelvin`, "k"],
  ["a missing parameter", `${opening}Paris\n</parameter>\n</function>`, "</"],
  ["an end inside of a value", `${opening}a</parameter>`, ">"],
  ["a parameter inside of a value", `${opening}<parameter=days>`, "="],
  ["a wrong number", `${opening}x\n</parameter>\n<parameter=days>\n15`, "5"],
  ["no end", `${opening}Paris${days}</function>`, "<|im_end|>"],
])("%s: %j", async (_, text, refused) => {
  expect(await follow(calls(tools.slice(0, 3)), text)).toBe(refused);
});

test("one call alone ends the reply where there may be no second", async () => {
  const text = "<tool_call>\n<function=noop>\n</function>\n</tool_call>";
  expect(await follow(calls(tools, false), text)).toBe("taken");
  expect(await follow(calls(tools, false), `${text}\n`)).toBe("\n");
});

test("a tag is taken whichever way it is spelt", async () => {
  const text = "<tool_call>\n<function=noop>\n</function>\n</tool_call>";
  const reply = await grammars.grammar(calls(tools, false));
  const ids = [...text].flatMap((letter) => tokenizer.encode(letter));
  for (const id of ids) reply.commit(id);
  expect(tokenizer.encode(text)).toContain(tokenizer.idOf("<tool_call>"));
  expect(ids).not.toContain(tokenizer.idOf("<tool_call>"));
});

test("what can't be held to is any value of its type", async () => {
  const given = object({
    ids: { type: "array", uniqueItems: true },
    text: { type: "string", pattern: "(?=a)" },
  });
  const text =
    "<tool_call>\n<function=f>\n<parameter=ids>\n[1, 1]\n</parameter>\n<parameter=text>\nb\n</parameter>\n";
  expect(await follow(calls([tool("f", given)]), text + closing)).toBe("taken");
});

describe("a string that may stand where an object may is read back as one", () => {
  const type = ["string", "object"];
  const held = { type, required: ["a"], properties: { a: { type: "integer" } } };
  const written = (value: string) =>
    `<tool_call>\n<function=f>\n<parameter=a>\n${value}\n</parameter>\n${closing}`;
  const of = (limits: Schema) => calls([tool("f", object({ a: { ...held, ...limits } }, ["a"]))]);

  test.each([
    ["of a length", { minLength: 2, maxLength: 5 }, ["ab", "é}", "a{}  "], ["a", "abcdef", ""]],
    ["of any length up to some", { maxLength: 2 }, ["", "a", "a["], ["abc"]],
    ["of no length", { maxLength: 0 }, [""], ["a"]],
    ["of a pattern", { pattern: "^[^a]+$" }, ["", "b", "aa"], []],
    ["of a format", { format: "date" }, ["", "2024-02-29", "soon"], []],
  ])("%s", async (_, limits, taken, refused) => {
    const spec = of(limits);
    for (const value of [...taken, '{"a":1}']) {
      expect(await follow(spec, written(value)), value).toBe("taken");
    }
    for (const value of [...refused, "{}", "[]", " {}", "\u00a0{}", "\ufeff[]", "{ }"]) {
      expect(await follow(spec, written(value)), value).not.toBe("taken");
    }
  });

  test.each([{ minLength: 2 }, { maxLength: 9 }, { pattern: "^.{2}$" }, {}])(
    "and calls of drawn tokens are valid with %j",
    async (limits) => {
      const spec = of(limits);
      const check = ajv.compile({ ...held, ...limits, pattern: undefined });
      for (let seed = 0; seed < 10; seed++) {
        const text = randomText(await grammars.grammar(spec), new Chance(seed));
        const parsed = parseReply(text, {
          reasoningOpen: false,
          tools: spec.tools,
          oneCall: false,
        });
        for (const call of parsed.toolCalls) {
          expect(check(JSON.parse(call.arguments).a), text).toBe(true);
        }
      }
    },
  );
});

test("a listed string that would be read back as something else is left out", async () => {
  const listed = (type: readonly string[], values: readonly unknown[]) =>
    calls([tool("f", object({ a: { type, enum: values } }, ["a"]))]);
  const written = (value: string) =>
    `<tool_call>\n<function=f>\n<parameter=a>\n${value}\n</parameter>\n${closing}`;
  const objects = listed(["string", "object"], ["{}", " {}", "[]", "{", "x", { a: 1 }]);
  for (const value of ["[]", "{", "x", '{"a":1}']) {
    expect(await follow(objects, written(value)), value).toBe("taken");
  }
  for (const value of ["{}", " {}"])
    expect(await follow(objects, written(value))).not.toBe("taken");
  const nulls = listed(["string", "null"], ["null", "None", "no"]);
  expect(await follow(nulls, written("no"))).toBe("taken");
  for (const value of ["null", "None"]) {
    expect(await follow(nulls, written(value))).not.toBe("taken");
  }
  expect(await follow(listed(["string"], ["{}", "null"]), written("{}"))).toBe("taken");
  const tags = listed(["string"], ["a\n</parameter>", "a</parameter", "\ud800"]);
  expect(await follow(tags, written("a</parameter"))).toBe("taken");
  expect(await follow(tags, written("\ufffd"))).not.toBe("taken");
  const none = grammars.grammar(listed(["string"], ["</parameter>"]));
  await expect(none).rejects.toThrow("No text would have the form");
});

test.each([
  ["a>b", "a", 'A call can\'t write the name "a>b".'],
  ["f", "a<b", 'A call can\'t write the name "a<b".'],
  ["f", " a", 'A call can\'t write the name " a".'],
  ["", "a", 'A call can\'t write the name "".'],
])("refuses the tool %j with the parameter %j", async (name, key, message) => {
  const spec = calls([tool(name, object({ [key]: {} }))]);
  await expect(grammars.grammar(spec)).rejects.toThrow(message);
  await expect(grammars.grammar(spec)).rejects.toMatchObject({ param: "tool_choice" });
});

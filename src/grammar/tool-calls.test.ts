import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
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
      using reply = await grammars.grammar(calls([only], false));
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
    using reply = await grammars.grammar(calls(withDefs.slice(1, 3)));
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
  using reply = await grammars.grammar(calls(tools, false));
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

import { describe, expect, test } from "vitest";
import type { TokenId } from "../ids.ts";
import { hasToken } from "../sampling/constraint.ts";
import { Automaton } from "./automaton.ts";
import { readEbnf } from "./ebnf.ts";
import { Endings } from "./endings.ts";
import { Chance, eosIds, grammars, idsIn, tokenizer, vocabSize } from "./grammar.cases.ts";
import { Grammars } from "./grammars.ts";
import type { ParseState } from "./parse-state.ts";
import type { ReplyGrammar } from "./reply-grammar.ts";
import type { GrammarSpec } from "./spec.ts";
import { toProgram } from "./write-program.ts";

const encoder = new TextEncoder();

/** Commits a text, and says with what it would end. Each token of that must be allowed. */
async function ended(spec: GrammarSpec, text: string): Promise<string> {
  const reply = await grammars.grammar(spec);
  for (const id of tokenizer.encode(text)) reply.commit(id);
  const ending = reply.ending()!;
  for (const id of ending) {
    expect(hasToken(reply.allowed(), id)).toBe(true);
    reply.commit(id);
  }
  expect(hasToken(reply.allowed(), eosIds[0]!)).toBe(true);
  return tokenizer.decode(ending);
}

const schema: GrammarSpec = {
  kind: "jsonSchema",
  schema: {
    type: "object",
    properties: {
      name: { type: "string" },
      size: { type: "number" },
      list: { type: "array", items: { type: "array", items: { type: "integer" } } },
      mood: { enum: ["glad", "gloomy", "so so"] },
    },
    required: ["name", "mood"],
    additionalProperties: false,
  },
};
const calls: GrammarSpec = {
  kind: "calls",
  parallel: true,
  tools: [
    {
      type: "function",
      function: {
        name: "look",
        parameters: {
          type: "object",
          properties: { place: { type: "string" }, times: { type: "integer" } },
          required: ["place", "times"],
        },
      },
    },
  ],
};
const call = "<tool_call>\n<function=look>\n<parameter=place>\n";
const times = "\n<parameter=times>\n0\n</parameter>\n</function>\n</tool_call>";
const nestedParts: GrammarSpec = {
  kind: "ebnf",
  grammar: 'root ::= "(" root ")" | root "+" | "x"',
};

/** Each place of these has an ending of its own: there are more than are counted. */
const many: GrammarSpec = {
  kind: "choice",
  choices: Array.from({ length: 600 }, (_, at) => `${at} ${"or more ".repeat(at % 40)}`),
};

test.each<[GrammarSpec, string, string]>([
  [{ kind: "jsonObject" }, "", "{}"],
  [{ kind: "jsonObject" }, "{}", ""],
  [{ kind: "jsonObject" }, '{"a": "some te', '"}'],
  [{ kind: "jsonObject" }, '{"a": "\\', '""}'],
  [{ kind: "jsonObject" }, '{"a": [[{"b": [1, -', "0]}]]}"],
  [{ kind: "jsonObject" }, '{"a": tr', "ue}"],
  [schema, '{"name": "a', '","mood":"glad"}'],
  [schema, '{"name":"","size":1.', '0,"mood":"glad"}'],
  [schema, '{"name":"","list":[[1,2],[3', ']],"mood":"glad"}'],
  [schema, '{"name":"","mood":"glo', 'omy"}'],
  [{ kind: "regex", pattern: "[a-z]+(-[0-9]{3})?!{2}" }, "ab-1", "00!!"],
  [{ kind: "regex", pattern: "[é-ü]{3}" }, "é", "éé"],
  [{ kind: "choice", choices: ["yes", "yes, but", "nobody"] }, "yes,", " but"],
  [{ kind: "choice", choices: ["yes", "yes, but", "nobody"] }, "n", "obody"],
  [calls, `${call}the se`, `\n</parameter>${times}`],
  [nestedParts, "((x++", "))"],
  [nestedParts, "((", "x))"],
])("%j: %j ends with %j", async (spec, text, ending) => {
  expect(await ended(spec, text)).toBe(ending);
});

test("half a character is made whole", async () => {
  const reply = await grammars.grammar({ kind: "regex", pattern: "[漢字]x" });
  const first = encoder.encode("漢")[0]!;
  const id = idsIn(reply.allowed()).find((each) => {
    const bytes = tokenizer.tokenBytes(each);
    return bytes.length === 1 && bytes[0] === first;
  })!;
  reply.commit(id);
  expect(tokenizer.decode([id, ...reply.ending()!])).toMatch(/^[漢字]x$/);
});

test("an ending of too many bytes is none", async () => {
  const reply = await grammars.grammar({ kind: "regex", pattern: "a(bc){2100}" });
  expect([reply.ending(), reply.forced(5), reply.forced(4202)]).toEqual([null, null, null]);
  expect(idsIn(reply.allowed(9))).toEqual(idsIn(reply.allowed()));
});

describe("the shortest", () => {
  const small = [
    'root ::= "(" root ")" | "[" [a-c]{2,4} "]" root? | "é"',
    'root ::= root "+" root | root "?"? | "x" | "-" root',
    'root ::= (a? b?)* "." a{2,5}\na ::= "a" | "aa" b\nb ::= "b" a b | "c"',
    'root ::= a "," root | a\na ::= b b b\nb ::= [xy]* "z" | "" | "[" root "]"',
    'root ::= ("a" | ("b" | "")* "c"){0,3} ("end" | "e" ("\\n" | "nd" root))',
  ];

  /** By trying all. */
  function fewest(automaton: Automaton, state: ParseState): number {
    let some = new Set([state]);
    for (let bytes = 0; bytes < 40; bytes++) {
      if ([...some].some(({ ended: there }) => there)) return bytes;
      const next = new Set<ParseState>();
      for (const each of some) {
        for (const byte of readable(automaton, each)) next.add(automaton.step(each, byte)!);
      }
      some = next;
    }
    throw new Error("no end");
  }

  const readable = (automaton: Automaton, state: ParseState) =>
    Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => {
      automaton.beginToken();
      return automaton.step(state, byte) !== null;
    });

  test.each(small)("%j", (grammar) => {
    const program = toProgram(readEbnf(grammar), "root", 16);
    const automaton = new Automaton(program);
    const endings = new Endings(automaton, program);
    const chance = new Chance(7);
    for (let walk = 0; walk < 30; walk++) {
      let state = automaton.start;
      for (let count = chance.below(9); count > 0; count--) {
        const bytes = readable(automaton, state);
        if (bytes.length > 0) state = automaton.step(state, chance.pick(bytes))!;
      }
      const bytes = endings.bytes(state);
      let after: ParseState | null = state;
      for (const byte of bytes) after = after && automaton.step(after, byte);
      expect(after?.ended).toBe(true);
      expect(bytes.length).toBe(endings.length(state));
      expect(bytes.length).toBe(fewest(automaton, state));
    }
  });
});

/**
 * What a reply of so many tokens says, drawn from those that are allowed.
 * @param wished what it says for as long as that is allowed
 */
function say(
  reply: ReplyGrammar,
  chance: Chance,
  tokens: number,
  wished: readonly TokenId[] = [],
): TokenId[] {
  const ids: TokenId[] = [];
  let follows = true;
  while (ids.length < tokens) {
    const left = tokens - ids.length;
    const set = reply.allowed(left);
    const wish = wished[ids.length];
    follows &&= wish !== undefined && hasToken(set, wish);
    const id = reply.forced(left) ?? (follows ? wish! : chance.pick(idsIn(set)));
    expect(hasToken(reply.allowed(), id)).toBe(true);
    ids.push(id);
    if (eosIds.includes(id)) break;
    reply.commit(id);
  }
  return ids;
}

describe("whatever is drawn, a reply ends in its form with its last token at the latest", () => {
  const nested = { kind: "ebnf", grammar: 'root ::= "(" root ")" "ending"{3} | "x"' } as const;
  test.each<[GrammarSpec, number]>([
    [{ kind: "jsonObject" }, 3],
    [schema, 24],
    [calls, 60],
    [nested, 4],
    [{ kind: "regex", pattern: "([a-z ]{2,30}|[^a-z]+é)*\\.{4,8}" }, 6],
    [{ kind: "choice", choices: ["yes", "no", "a very long answer, which takes tokens"] }, 2],
    [many, 26],
  ])("of form %#", async (spec, least) => {
    const chance = new Chance(3);
    for (let round = 0; round < 15; round++) {
      const reply = await grammars.grammar(spec);
      const ids = say(reply, chance, least + chance.below(60));
      expect(eosIds).toContain(ids.at(-1));
    }
  });
});

describe("what is forced and allowed doesn't depend on what others asked before", () => {
  /** Rules that begin with themselves in circles, with endings of one length. */
  const circles = [
    [
      'root ::= two six | six | "c" | "b"',
      'one ::= "a" six "b" | root "a"',
      'two ::= one | "c" six "b"',
      'six ::= one "a" | two "c" | six | "c" six "b"',
    ],
    [
      'root ::= one | "a" root "b"',
      'one ::= two "b" | one one | six "b"',
      'two ::= six "c" | "c" one "b"',
      'six ::= "c" two "c" | "c" | two "a" | root "a"',
    ],
  ].map((rules): GrammarSpec => ({ kind: "ebnf", grammar: rules.join("\n") }));
  /** Its states are made anew again and again. */
  const evicted: GrammarSpec = { kind: "regex", pattern: "(a|ab){0,2000}(c{9}|d{5}e{4}){3}" };

  /** What each token of a reply was drawn from. */
  async function drawnFrom(own: Grammars, spec: GrammarSpec, seed: number): Promise<unknown[]> {
    const chance = new Chance(seed);
    const reply = await own.grammar(spec);
    const seen: unknown[] = [];
    for (let left = 6 + chance.below(30); left > 0; left--) {
      const forced = reply.forced(left);
      const allowed = idsIn(reply.allowed(left));
      seen.push([forced, allowed]);
      const id = forced ?? chance.pick(allowed);
      if (eosIds.includes(id)) break;
      reply.commit(id);
    }
    return seen;
  }

  test.each([...circles, evicted, many])("%#", async (spec) => {
    const warm = new Grammars(tokenizer, eosIds, vocabSize);
    for (let seed = 100; seed < 130; seed++) await drawnFrom(warm, spec, seed);
    for (let seed = 0; seed < 6; seed++) {
      const cold = new Grammars(tokenizer, eosIds, vocabSize);
      expect(await drawnFrom(warm, spec, seed)).toEqual(await drawnFrom(cold, spec, seed));
    }
  });
});

/** Names that take some tokens each. */
const names = Array.from({ length: 12 }, (_, at) => `column_name_${at}`);
const strings = (some: readonly string[]) => ({
  type: "object",
  properties: Object.fromEntries(some.map((name) => [name, { type: "string" }])),
  required: some,
  additionalProperties: false,
});
const objects: GrammarSpec = {
  kind: "jsonSchema",
  schema: { type: "array", items: strings(names) },
};
const stores: GrammarSpec = {
  kind: "calls",
  parallel: true,
  tools: [
    { type: "function", function: { name: "store", parameters: strings(names.slice(0, 6)) } },
  ],
};

test.each([
  ["an element", objects, "[{", ",{", 186],
  ["a call", stores, "<tool_call>", "\n<tool_call>", 167],
] as const)("no token begins %s that can't be ended", async (_, spec, first, more, tokens) => {
  const begun = first + (await ended(spec, first)).replace(/\]$/, "");
  const again = more + begun.slice(first.length);
  const wished = tokenizer.encode(begun + again.repeat(3));
  for (let most = tokens; most < tokens + 90; most += 3) {
    const ids = say(await grammars.grammar(spec), new Chance(most), most, wished);
    expect(eosIds).toContain(ids.at(-1));
  }
  // So many that they were left alone where the first of them began.
  expect(say(await grammars.grammar(spec), new Chance(1), 400, wished).slice(0, 40)).toEqual(
    wished.slice(0, 40),
  );
});

test("where the ending has no room, nothing is forced", async () => {
  const reply = await grammars.grammar(calls);
  expect(reply.forced(8)).toBeNull();
  expect(idsIn(reply.allowed(8))).toEqual(idsIn(reply.allowed()));
});

test("a reply with tokens to spare is left alone", async () => {
  const reply = await grammars.grammar({ kind: "jsonObject" });
  expect(reply.forced(1000)).toBeNull();
  expect(idsIn(reply.allowed(1000))).toEqual(idsIn(reply.allowed()));
});

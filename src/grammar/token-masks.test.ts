import { expect, test } from "vitest";
import { Automaton } from "./automaton.ts";
import { readEbnf } from "./ebnf.ts";
import type { Rules } from "./expressions.ts";
import { Chance, eosIds, grammars, idsIn, tokenizer, vocabSize } from "./grammar.cases.ts";
import { JsonText } from "./json-text.ts";
import type { ParseState } from "./parse-state.ts";
import { readRegex, whole } from "./regex.ts";
import type { GrammarSpec } from "./spec.ts";
import { toProgram } from "./write-program.ts";

/** The same rules as a grammar's, without its vocabulary. */
const rulesOf: Readonly<Record<string, () => Rules>> = {
  json: () => {
    const rules: Rules = new Map();
    return rules.set("root", new JsonText(rules).object);
  },
  words: () => new Map([["root", whole(readRegex("([a-z ]{2,300}|[^a-z]+é)*\\.{40,80}"))]]),
  nested: () => readEbnf('root ::= "(" root? ")" root | "<" ([^<>"]* root){0,3} ">" | "é"?'),
};
const specs: Readonly<Record<string, GrammarSpec>> = {
  json: { kind: "jsonObject" },
  words: { kind: "regex", pattern: "([a-z ]{2,300}|[^a-z]+é)*\\.{40,80}" },
  nested: {
    kind: "ebnf",
    grammar: 'root ::= "(" root? ")" root | "<" ([^<>"]* root){0,3} ">" | "é"?',
  },
};

const bytes = Array.from({ length: vocabSize }, (_, id) =>
  tokenizer.isSpecial(id) ? new Uint8Array() : tokenizer.tokenBytes(id),
);

/** The tokens whose bytes can be read, each from the beginning. */
function readable(automaton: Automaton, state: ParseState): number[] {
  return bytes.flatMap((token, id) => {
    automaton.beginToken();
    let after: ParseState | null = token.length > 0 ? state : null;
    for (const byte of token) after = after && automaton.step(after, byte);
    return after ? [id] : [];
  });
}

test.each(Object.keys(specs))(
  "%s: allows just the tokens whose bytes can be read",
  async (name) => {
    // Long repeats are written for the longest token: here as if there were no shorter way.
    const automaton = new Automaton(toProgram(rulesOf[name]!(), "root", 1_000_000));
    const chance = new Chance(5);
    for (let walk = 0; walk < 3; walk++) {
      const reply = await grammars.grammar(specs[name]!);
      let state = automaton.start;
      for (let tokens = 0; tokens < 25; tokens++) {
        const expected = readable(automaton, state);
        const ends = state.ended ? eosIds : [];
        expect(idsIn(reply.allowed())).toEqual([...expected, ...ends].sort((a, b) => a - b));
        if (expected.length === 0) break;
        const id = chance.pick(expected);
        reply.commit(id);
        for (const byte of bytes[id]!) state = automaton.step(state, byte)!;
      }
    }
  },
);

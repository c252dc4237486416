import { expect, test } from "vitest";
import type { TokenId } from "../ids.ts";
import { anythingAhead, type LookAhead } from "../sampling/constraint.ts";
import { Chance, eosIds, grammars, idsIn, tokenizer, vocabSize } from "./grammar.cases.ts";
import { Grammars } from "./grammars.ts";
import type { ReplyGrammar } from "./reply-grammar.ts";
import type { GrammarSpec } from "./spec.ts";

const schema = {
  type: "object",
  properties: {
    name: { type: "string", pattern: "^[A-Zé]{2,9}$" },
    counts: { type: "array", items: { type: "integer", minimum: 5 }, maxItems: 4 },
    more: { $ref: "#" },
  },
  required: ["name"],
};
const specs: readonly GrammarSpec[] = [
  { kind: "jsonSchema", schema },
  { kind: "regex", pattern: "(\\d{1,3}, ){0,40}(end|[^a-z]*)" },
  { kind: "ebnf", grammar: 'root ::= root "+" root | "(" root ")" | [a-c]+ | "" ' },
  { kind: "choice", choices: ["yes", "yes, but", "no", "漢字", "漢"] },
];

/** The drafts that can come next, of all tokens. */
const drawable = (ahead: LookAhead): TokenId[] =>
  Array.from({ length: vocabSize }, (_, id) => id).filter((id) => ahead.after(id) !== null);

test.each(specs)("%j: takes just the drafts that could be drawn", async (spec) => {
  const chance = new Chance(4);
  for (let round = 0; round < 4; round++) {
    const reply = await grammars.grammar(spec);
    const drafted = await grammars.grammar(spec);
    let ahead = drafted.ahead();
    for (let tokens = 0; tokens < 12; tokens++) {
      const allowed = idsIn(reply.allowed());
      expect(drawable(ahead)).toEqual(allowed);
      const id = chance.pick(allowed);
      ahead = ahead.after(id)!;
      reply.commit(id);
      if (!eosIds.includes(id)) continue;
      expect(drawable(ahead)).toEqual([]);
      break;
    }
  }
});

test("drafts begin behind the tokens that the reply has", async () => {
  const reply = await grammars.grammar({ kind: "regex", pattern: "ab{2}c" });
  const [a, b, c] = ["a", "b", "c"].map((text) => tokenizer.encode(text)[0]!);
  const before = reply.ahead();
  reply.commit(a!);
  reply.commit(b!);
  expect(reply.ahead().after(b!)!.after(c!)!.after(eosIds[0]!)).not.toBeNull();
  expect(reply.ahead().after(c!)).toBeNull();
  expect([before.after(a!)?.after(b!) !== undefined, before.after(b!)]).toEqual([true, null]);
});

/** What each token of a reply is drawn from. @param look whether drafts are looked at before */
async function drawnFrom(own: Grammars, spec: GrammarSpec, look: boolean): Promise<unknown[]> {
  const chance = new Chance(9);
  const wild = new Chance(2);
  const reply = await own.grammar(spec);
  const seen: unknown[] = [];
  for (let left = 40; left > 0; left--) {
    if (look) lookWildly(reply, wild);
    const allowed = idsIn(reply.allowed(left));
    seen.push([reply.forced(left), allowed]);
    const id = reply.forced(left) ?? chance.pick(allowed);
    if (eosIds.includes(id)) break;
    reply.commit(id);
  }
  return seen;
}

function lookWildly(reply: ReplyGrammar, chance: Chance): void {
  const likely = idsIn(reply.allowed());
  for (let path = 0; path < 3; path++) {
    let ahead: LookAhead | null = reply.ahead();
    for (let depth = 0; depth < 15 && ahead; depth++) {
      ahead = ahead.after(chance.below(3) ? chance.pick(likely) : chance.below(vocabSize));
    }
  }
}

test.each(specs)("%j: looking ahead changes nothing of a reply", async (spec) => {
  const plain = new Grammars(tokenizer, eosIds, vocabSize);
  const drafted = new Grammars(tokenizer, eosIds, vocabSize);
  expect(await drawnFrom(drafted, spec, true)).toEqual(await drawnFrom(plain, spec, false));
});

test("what is too much work for a draft is let through, and stays too much for the reply", async () => {
  const own = new Grammars(tokenizer, eosIds, vocabSize);
  const reply = await own.grammar({
    kind: "regex",
    pattern: "x\u0001([a-m]?x?[n-z]?y?[^m]?){3000}",
  });
  const [x, y, one] = ["x", "y", "\u0001"].map((text) => tokenizer.encode(text)[0]!);
  expect(reply.ahead().after(y!)).toBeNull();
  expect(reply.ahead().after(x!)!.after(one!)).toBe(anythingAhead);
  reply.commit(x!);
  reply.commit(one!);
  expect(reply.ahead()).toBe(anythingAhead);
  expect(() => reply.allowed()).toThrow("too many ways");
});

import { expect, test, vi } from "vitest";
import { InputError, InvariantError } from "../errors.ts";
import { hasToken } from "../sampling/constraint.ts";
import { Tokenizer } from "../text/tokenizer.ts";
import { Automaton } from "./automaton.ts";
import {
  Chance,
  eosIds,
  follow,
  grammars,
  idsIn,
  randomText,
  tokenizer,
  tokenizerJson,
  vocabSize,
} from "./grammar.cases.ts";
import { Grammars } from "./grammars.ts";
import type { GrammarSpec } from "./spec.ts";
import { TokenTrie } from "./token-trie.ts";

test("regexes and EBNF hold the whole reply", async () => {
  const pattern = "^[a-c]{2,4}(-\\d+)?$";
  const grammar = 'root ::= "<" [a-z]{1,9} ">" root? | "é漢"';
  for (let seed = 0; seed < 20; seed++) {
    const first = await grammars.grammar({ kind: "regex", pattern });
    expect(randomText(first, new Chance(seed))).toMatch(new RegExp(pattern));
    const second = await grammars.grammar({ kind: "ebnf", grammar });
    expect(randomText(second, new Chance(seed))).toMatch(/^((<[a-z]+>)+(é漢)?|é漢)$/);
  }
  expect(await follow({ kind: "regex", pattern }, "abc-12")).toBe("taken");
  expect(await follow({ kind: "regex", pattern }, "ab-")).toBe("<|im_end|>");
});

test("a choice is one of its texts", async () => {
  const choices = ["yes", "no", "yes, but", "", "né", "n漢", "😀", "😁"];
  const seen = new Set<string>();
  for (let seed = 0; seed < 60; seed++) {
    const reply = await grammars.grammar({ kind: "choice", choices });
    seen.add(randomText(reply, new Chance(seed)));
  }
  for (const text of seen) expect(choices).toContain(text);
  expect(seen.size).toBeGreaterThan(3);
  for (const text of choices) expect(await follow({ kind: "choice", choices }, text)).toBe("taken");
  expect(await follow({ kind: "choice", choices }, "yes,")).toBe("<|im_end|>");
});

test("eos comes where the reply may end, and alone where it must", async () => {
  const reply = await grammars.grammar({ kind: "regex", pattern: "ab?" });
  const [a, b] = ["a", "b"].map((text) => tokenizer.encode(text)[0]!);
  expect(idsIn(reply.allowed()).filter((id) => eosIds.includes(id))).toEqual([]);
  reply.commit(a!);
  expect(idsIn(reply.allowed())).toEqual([b!, ...eosIds].sort((x, y) => x - y));
  reply.commit(b!);
  expect(idsIn(reply.allowed())).toEqual([...eosIds].sort((x, y) => x - y));
  reply.commit(eosIds[1]!);
  expect(() => reply.allowed()).toThrow(InvariantError);
  expect(() => reply.commit(a!)).toThrow(InvariantError);
});

test("a token that isn't allowed is a bug, and changes nothing", async () => {
  const reply = await grammars.grammar({ kind: "regex", pattern: "ab" });
  const [a, b] = ["a", "b"].map((text) => tokenizer.encode(text)[0]!);
  for (const id of [b!, eosIds[0]!, vocabSize - 1, tokenizer.idOf("<|im_start|>")!]) {
    expect(() => reply.commit(id)).toThrow(`token ${id}, which the grammar refuses`);
  }
  reply.commit(a!);
  expect(idsIn(reply.allowed())).toEqual([b]);
});

test("no special token is text, and no row beyond the tokens", async () => {
  const reply = await grammars.grammar({ kind: "regex", pattern: "[^]*" });
  const set = reply.allowed();
  expect(set.length).toBe(vocabSize / 32);
  for (const name of ["<|im_start|>", "<think>", "<tool_call>", "a"]) {
    expect(hasToken(set, tokenizer.idOf(name)!), name).toBe(name !== "<|im_start|>");
  }
  for (let id = tokenizer.vocabSize; id < vocabSize; id++) expect(hasToken(set, id)).toBe(false);
});

test("two replies to one grammar don't disturb each other", async () => {
  const spec: GrammarSpec = {
    kind: "jsonSchema",
    schema: { type: "array", items: { type: "integer" } },
  };
  const texts = ["[1, 22]", "[333]"];
  const ids = texts.map((text) => [...tokenizer.encode(text), eosIds[0]!]);
  const first = await grammars.grammar(spec);
  const second = await grammars.grammar(spec);
  const replies = [first, second];
  const sets: number[][][] = [[], []];
  for (let at = 0; at < ids[0]!.length; at++) {
    for (const [which, reply] of replies.entries()) {
      const id = ids[which]![at];
      if (id === undefined) continue;
      sets[which]!.push(idsIn(reply.allowed()));
      reply.commit(id);
    }
  }
  for (const [which, tokens] of ids.entries()) {
    const alone = await grammars.grammar(spec);
    for (const [at, id] of tokens.entries()) {
      expect(idsIn(alone.allowed())).toEqual(sets[which]![at]);
      alone.commit(id);
    }
  }
});

test("goes on from the beginning after a reply that couldn't be followed", async () => {
  const own = new Grammars(tokenizer, eosIds, vocabSize);
  const pattern = "yes|x\u0001([a-m]?x?[n-z]?y?[^m]?){3000}";
  const say = async (text: string) => {
    const reply = await own.grammar({ kind: "regex", pattern });
    for (const id of tokenizer.encode(text)) reply.commit(id);
    return idsIn(reply.allowed());
  };
  const ends = [...eosIds].sort((a, b) => a - b);
  expect(await say("yes")).toEqual(ends);
  for (let round = 0; round < 2; round++) {
    await expect(say("x\u0001")).rejects.toMatchObject({ code: "grammar_too_complex" });
    expect(await say("yes")).toEqual(ends);
  }
});

test("keeps a grammar that was taken, and none that was refused", async () => {
  const own = new Grammars(tokenizer, eosIds, vocabSize);
  const made = vi.spyOn(Automaton.prototype, "possible", "get");
  for (let round = 0; round < 2; round++) {
    await own.grammar({ kind: "regex", pattern: "a{1,3}" });
    const refused = own.grammar({ kind: "regex", pattern: "([a-m]?[n-z]?.?){2000}" });
    await expect(refused).rejects.toMatchObject({ code: "grammar_too_complex" });
  }
  expect(made).toHaveBeenCalledTimes(3);
  made.mockRestore();
});

test("a vocabulary that could not be read is read again", async () => {
  const own = new Grammars(tokenizer, eosIds, vocabSize);
  const reads = vi.spyOn(TokenTrie, "of").mockRejectedValueOnce(new Error("not now"));
  await expect(own.grammar({ kind: "jsonObject" })).rejects.toThrow("not now");
  const reply = await own.grammar({ kind: "jsonObject" });
  expect(hasToken(reply.allowed(), tokenizer.encode("{")[0]!)).toBe(true);
  await own.grammar({ kind: "jsonObject" });
  expect(reads).toHaveBeenCalledTimes(2);
  reads.mockRestore();
});

test("makes a grammar once, and again when many others came between", async () => {
  const own = new Grammars(tokenizer, eosIds, vocabSize);
  const asks = Array.from({ length: 80 }, (_, index) =>
    own.grammar({ kind: "regex", pattern: `a{${index}}b` }),
  );
  const sizes = (await Promise.all(asks)).map((reply) => idsIn(reply.allowed()).length);
  const again = await own.grammar({ kind: "regex", pattern: "a{0}b" });
  expect(idsIn(again.allowed()).length).toBe(sizes[0]);
});

test("a vocabulary with a special marker has it as text", async () => {
  const text = JSON.stringify(JSON.parse(tokenizerJson)).replace(
    /("content":"<tool_call>"[^}]*"special":)false/,
    "$1true",
  );
  const other = Tokenizer.fromJson(text, null, "tokenizer.json");
  const id = other.idOf("<tool_call>")!;
  expect(other.isSpecial(id)).toBe(true);
  const tools = [{ type: "function", function: { name: "f" } }] as const;
  const own = new Grammars(other, eosIds, vocabSize);
  const reply = await own.grammar({ kind: "calls", tools, parallel: true });
  expect(hasToken(reply.allowed(), id)).toBe(true);
});

/** One long line of what repeats, and more of it than may be. */
const hostile: readonly (readonly [string, GrammarSpec, string])[] = [
  [
    "a regex of repeats in repeats",
    { kind: "regex", pattern: "(((a{100}){100}){100}){100}" },
    "takes more than 100000 instructions",
  ],
  [
    "a regex that may be empty everywhere",
    { kind: "regex", pattern: "((.?){5000}){5000}" },
    "takes more than 100000 instructions",
  ],
  [
    "an EBNF of repeats in rules",
    {
      kind: "ebnf",
      grammar: 'root ::= a{9999}\na ::= (b | "y"){9999}\nb ::= "x"{9999} ("z"{9000} "y"){9}',
    },
    "takes more than 100000 instructions",
  ],
  [
    "an EBNF without an end",
    { kind: "ebnf", grammar: 'root ::= "a" root' },
    "No text would have the form that is asked for.",
  ],
  [
    "an empty class",
    { kind: "regex", pattern: "a[]" },
    "No text would have the form that is asked for.",
  ],
  ["no choices", { kind: "choice", choices: [] }, "No text would have the form that is asked for."],
  [
    "many choices",
    { kind: "choice", choices: Array.from({ length: 5000 }, String) },
    "There are 5000 choices; 4096 are the most.",
  ],
  [
    "half a character",
    { kind: "choice", choices: ["\ud83d"] },
    "A choice has half a surrogate pair.",
  ],
  [
    "a long grammar",
    { kind: "ebnf", grammar: `root ::= "${"a".repeat(70_000)}"` },
    "65536 are the most",
  ],
];

test.each(hostile)("refuses %s", async (_, spec, message) => {
  await expect(grammars.grammar(spec)).rejects.toThrow(InputError);
  await expect(grammars.grammar(spec)).rejects.toThrow(message);
  await expect(grammars.grammar(spec)).rejects.toMatchObject({ param: "structured_outputs" });
  await expect(grammars.grammar(spec, "grammar")).rejects.toMatchObject({ param: "grammar" });
  // And none of it is in the way of what comes next.
  expect(await follow({ kind: "jsonObject" }, '{"a": 1}')).toBe("taken");
});

test.each([
  ["a word that a search begins everywhere", "[ab]*a[ab]{60}", `${"ab".repeat(40)}b`],
  ["repeats of repeats", "((a*)*)*b", `${"a".repeat(50)}b`],
  ["many ways to repeat", "(a|aa|aaa)*(aa|a)*b", `${"a".repeat(200)}b`],
  ["many optional parts", `${"a?".repeat(500)}${"a".repeat(500)}`, "a".repeat(700)],
])("follows %s", async (_, pattern, text) => {
  expect(await follow({ kind: "regex", pattern }, text)).toBe("taken");
});

test.each([
  ["at its beginning", "([a-m]?[n-z]?.?){2000}", ""],
  ["further on", "x\u0001([a-m]?x?[n-z]?y?[^m]?){3000}", "x\u0001"],
])("refuses what can be read in too many ways %s", async (_, pattern, beginning) => {
  const asked = grammars.grammar({ kind: "regex", pattern }).then((reply) => {
    for (const id of tokenizer.encode(beginning)) reply.commit(id);
    return reply.allowed();
  });
  await expect(asked).rejects.toThrow(InputError);
  await expect(asked).rejects.toMatchObject({ code: "grammar_too_complex" });
});

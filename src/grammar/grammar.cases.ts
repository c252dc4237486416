import { fileURLToPath } from "node:url";
import { openFolder } from "../checkpoint/source-node.ts";
import type { TokenId } from "../ids.ts";
import { hasToken, type TokenSet } from "../sampling/constraint.ts";
import { Tokenizer } from "../text/tokenizer.ts";
import { Automaton } from "./automaton.ts";
import type { Rules } from "./expressions.ts";
import { Grammars } from "./grammars.ts";
import type { ParseState } from "./parse-state.ts";
import type { ReplyGrammar } from "./reply-grammar.ts";
import type { GrammarSpec } from "./spec.ts";
import { toProgram } from "./write-program.ts";

const nano = await openFolder(fileURLToPath(new URL("../../models/nano", import.meta.url)));

export const tokenizerJson: string = await nano.text("tokenizer.json");
export const tokenizer: Tokenizer = Tokenizer.fromJson(
  tokenizerJson,
  await nano.text("tokenizer_config.json"),
  "nano/tokenizer.json",
);
/** Of nano's head, which has rows beside those of its tokens. */
export const vocabSize = 8192;
export const eosIds: readonly TokenId[] = ["<|im_end|>", "<|endoftext|>"].map(
  (name) => tokenizer.idOf(name)!,
);
export const grammars: Grammars = new Grammars(tokenizer, eosIds, vocabSize);

/** Numbers from a seed, the same each time. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 to below `count`. */
  below(count: number): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return Math.floor((((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32) * count);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}

export function automatonOf(rules: Rules, start = "root"): Automaton {
  return new Automaton(toProgram(rules, start, 16));
}

/** How much of a text can be read, in bytes; "whole" where it may also end there. */
export function readBy(automaton: Automaton, text: string): number | "whole" {
  automaton.beginToken();
  let state: ParseState | null = automaton.start;
  const bytes = new TextEncoder().encode(text);
  for (const [at, byte] of bytes.entries()) {
    state = automaton.step(state, byte);
    if (!state) return at;
  }
  return state.ended ? "whole" : bytes.length;
}

export const idsIn = (set: TokenSet): TokenId[] =>
  Array.from({ length: set.length * 32 }, (_, id) => id).filter((id) => hasToken(set, id));

/** Gives a text's tokens to a grammar: whether it takes them and an end, or the first that it refuses. */
export async function follow(spec: GrammarSpec, text: string): Promise<"taken" | string> {
  const reply = await grammars.grammar(spec);
  for (const id of [...tokenizer.encode(text), eosIds[0]!]) {
    if (!hasToken(reply.allowed(), id)) return tokenizer.decode([id]);
    reply.commit(id);
  }
  return "taken";
}

/** Tokens after which a reply hurries to its end, and what brings it there. */
const hurryTokens = 60;
const closings = ['"', "}", "]", "\n</parameter>\n"].map((text) => tokenizer.encode(text));

/** What a reply says whose tokens are drawn from those allowed. */
export function randomText(reply: ReplyGrammar, chance: Chance): string {
  const ids: TokenId[] = [];
  let planned: readonly TokenId[] = [];
  while (ids.length < 2000) {
    const set = reply.allowed();
    const ends = eosIds.filter((id) => hasToken(set, id));
    if (planned.length === 0 && ids.length > hurryTokens && chance.below(4) > 0) {
      const some = closings.filter(([first]) => hasToken(set, first!));
      planned = ends.length > 0 ? ends : some.length > 0 ? chance.pick(some) : [];
    }
    const [next] = planned;
    const follows = next !== undefined && hasToken(set, next);
    const id = follows ? next : chance.pick(idsIn(set));
    planned = follows ? planned.slice(1) : [];
    reply.commit(id);
    if (eosIds.includes(id)) return tokenizer.decode(ids);
    ids.push(id);
  }
  throw new Error(`no end: ${tokenizer.decode(ids).slice(0, 500)}`);
}

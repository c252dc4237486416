import { nextTask } from "../clock.ts";
import { InputError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { nestsWithin } from "../json.ts";
import {
  grammarCharsMax,
  grammarPlacesKeptMax,
  grammarsKeptMax,
  grammarTokenStepsMax,
  jsonDepthMax,
} from "../limits.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import { Automaton } from "./automaton.ts";
import type { CompiledGrammar } from "./compiled-grammar.ts";
import { EndingTokens } from "./ending-tokens.ts";
import { Endings } from "./endings.ts";
import { rulesOf } from "./form-rules.ts";
import { FormWork } from "./form-work.ts";
import { ReplyGrammar } from "./reply-grammar.ts";
import type { GrammarSpec } from "./spec.ts";
import { TokenMasks } from "./token-masks.ts";
import { TokenTrie } from "./token-trie.ts";
import { toProgram } from "./write-program.ts";

/** The request field that a kind of grammar comes from, unless the caller says. */
const fields: Readonly<Record<GrammarSpec["kind"], string>> = {
  jsonObject: "response_format",
  jsonSchema: "response_format",
  regex: "structured_outputs",
  choice: "structured_outputs",
  ebnf: "structured_outputs",
  calls: "tool_choice",
};

/** Steps of the work for a token in a step of making a form. */
const tokenStepsAStep = 50;
/** Steps for one draft: some places of a reply to an ordinary form, made for the first time. */
const draftStepsMax = 100_000;

/** Makes grammars for one vocabulary. What a vocabulary needs for that is made for the first of them. */
export class Grammars {
  readonly #tokenizer: Tokenizer;
  readonly #eosIds: readonly TokenId[];
  readonly #words: number;
  #trie: Promise<TokenTrie> | null = null;
  /** By their descriptions, those used last at the end. */
  readonly #kept = new Map<string, CompiledGrammar>();
  readonly #making = new Map<string, Promise<CompiledGrammar>>();

  /**
   * @param eosIds tokens that end a reply
   * @param vocabSize rows of the model's head, which may be more than there are tokens
   */
  constructor(tokenizer: Tokenizer, eosIds: readonly TokenId[], vocabSize: number) {
    this.#tokenizer = tokenizer;
    this.#eosIds = eosIds;
    this.#words = Math.ceil(vocabSize / 32);
  }

  /**
   * What holds one reply to a form.
   * @param param the request field at fault where it can't be held to
   * @throws InputError
   */
  async grammar(spec: GrammarSpec, param: string = fields[spec.kind]): Promise<ReplyGrammar> {
    try {
      const key = describe(spec);
      const compiled = this.#kept.get(key) ?? (await this.#made(key, spec));
      const reply = new ReplyGrammar(compiled);
      // What its first token and its end take is not left to a round.
      reply.allowed();
      this.#keep(key, compiled);
      return reply;
    } catch (cause) {
      if (!(cause instanceof InputError)) throw cause;
      throw new InputError(cause.message, param, cause.code);
    }
  }

  /** Its trie, which is made once. */
  #vocabulary(): Promise<TokenTrie> {
    this.#trie ??= TokenTrie.of(this.#tokenizer, new Set(this.#eosIds)).catch((cause: unknown) => {
      this.#trie = null;
      throw cause;
    });
    return this.#trie;
  }

  /** As the one used last: those used longest ago go. */
  #keep(key: string, grammar: CompiledGrammar): void {
    this.#kept.delete(key);
    this.#kept.set(key, grammar);
    let places = [...this.#kept.values()].reduce((sum, each) => sum + each.places, 0);
    for (const [oldest, each] of this.#kept) {
      if (places <= grammarPlacesKeptMax && this.#kept.size <= grammarsKeptMax) break;
      this.#kept.delete(oldest);
      places -= each.places;
    }
  }

  /** One of that description, for all who ask while it is made. */
  #made(key: string, spec: GrammarSpec): Promise<CompiledGrammar> {
    const begun = this.#making.get(key);
    if (begun) return begun;
    const making = this.#make(spec).finally(() => this.#making.delete(key));
    this.#making.set(key, making);
    return making;
  }

  async #make(spec: GrammarSpec): Promise<CompiledGrammar> {
    const trie = await this.#vocabulary();
    const work = new FormWork();
    const rules = rulesOf(spec, work);
    // Each part may take as long as a round: others have their turn in between.
    await nextTask();
    const program = toProgram(rules, "root", trie.depthMax, work);
    await nextTask();
    const automaton = new Automaton(program);
    const masks = new TokenMasks(automaton, trie, this.#words);
    // What is too ambiguous is mostly so from its first token on.
    automaton.beginToken(Math.min(grammarTokenStepsMax, tokenStepsAStep * work.left));
    if (!automaton.possible) throw new InputError("No text would have the form that is asked for.");
    masks.add(automaton.start, new Int32Array(this.#words));
    return {
      automaton,
      draftAutomaton: new Automaton(program, draftStepsMax),
      places: program.ops.length,
      endings: new EndingTokens(automaton, new Endings(automaton, program), trie),
      masks,
      words: this.#words,
      eosIds: this.#eosIds,
      tokens: trie.tokens,
      tokenBytes: (id) => this.#tokenizer.tokenBytes(id),
    };
  }
}

/** A description's text: equal where the grammars are. */
function describe(spec: GrammarSpec): string {
  const written = JSON.stringify(spec);
  if (written.length > grammarCharsMax) {
    throw new InputError(
      `What describes the reply's form has ${written.length} characters as JSON; ` +
        `${grammarCharsMax} are the most.`,
    );
  }
  if (!nestsWithin(written, jsonDepthMax)) {
    throw new InputError(
      `What describes the reply's form nests deeper than ${jsonDepthMax} levels.`,
    );
  }
  return written;
}

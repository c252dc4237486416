import { InputError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { nestsWithin } from "../json.ts";
import {
  choicesMax,
  grammarCharsMax,
  grammarPlacesKeptMax,
  grammarsKeptMax,
  jsonDepthMax,
} from "../limits.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import { Automaton } from "./automaton.ts";
import { readEbnf } from "./ebnf.ts";
import { EndingTokens } from "./ending-tokens.ts";
import { Endings } from "./endings.ts";
import { type Rules, texts } from "./expressions.ts";
import { SchemaReader } from "./json-schema.ts";
import { JsonText } from "./json-text.ts";
import { readRegex, whole } from "./regex.ts";
import { type CompiledGrammar, ReplyGrammar } from "./reply-grammar.ts";
import type { GrammarSpec } from "./spec.ts";
import { TokenMasks } from "./token-masks.ts";
import { TokenTrie } from "./token-trie.ts";
import { callRules } from "./tool-calls.ts";
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

/** Makes grammars for one vocabulary. What a vocabulary needs for that is made for the first of them. */
export class Grammars {
  readonly #tokenizer: Tokenizer;
  readonly #eosIds: readonly TokenId[];
  readonly #words: number;
  #trie: Promise<TokenTrie> | null = null;
  /** By their descriptions, those used last at the end. */
  readonly #kept = new Map<string, CompiledGrammar>();

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
      const trie = await this.#vocabulary();
      const compiled = this.#kept.get(key) ?? this.#compile(spec, trie);
      const reply = new ReplyGrammar(compiled);
      // What is too ambiguous is mostly so from its first token on.
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

  #compile(spec: GrammarSpec, trie: TokenTrie): CompiledGrammar {
    const program = toProgram(rulesOf(spec), "root", trie.depthMax);
    const automaton = new Automaton(program);
    if (!automaton.possible) throw new InputError("No text would have the form that is asked for.");
    return {
      automaton,
      places: program.instructions.length,
      endings: new EndingTokens(automaton, new Endings(automaton, program), trie),
      masks: new TokenMasks(automaton, trie, this.#words),
      words: this.#words,
      eosIds: this.#eosIds,
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

function rulesOf(spec: GrammarSpec): Rules {
  const rules: Rules = new Map();
  switch (spec.kind) {
    case "jsonObject":
      return rules.set("root", new JsonText(rules).object);
    case "jsonSchema": {
      const reader = new SchemaReader(spec.schema, rules, new JsonText(rules));
      rules.set("root", reader.expression({ schema: spec.schema, at: "#" }));
      reader.finish();
      return rules;
    }
    case "regex":
      return rules.set("root", whole(readRegex(spec.pattern)));
    case "choice":
      return rules.set("root", choice(spec.choices));
    case "ebnf":
      return readEbnf(spec.grammar);
    case "calls":
      return callRules(spec.tools, spec.parallel);
  }
}

function choice(choices: readonly string[]): ReturnType<typeof texts> {
  if (choices.length > choicesMax) {
    throw new InputError(`There are ${choices.length} choices; ${choicesMax} are the most.`);
  }
  if (!choices.every((each) => each.isWellFormed())) {
    throw new InputError("A choice has half a surrogate pair.");
  }
  return texts(choices);
}

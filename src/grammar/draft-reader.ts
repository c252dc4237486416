import { InputError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { anythingAhead, hasToken, type LookAhead } from "../sampling/constraint.ts";
import type { Automaton } from "./automaton.ts";
import type { CompiledGrammar } from "./compiled-grammar.ts";
import type { ParseState } from "./parse-state.ts";

/** Behind eos. */
const nothingAhead: LookAhead = { after: () => null };

/**
 * Reads drafts behind a reply. Its automaton serves drafts alone: the work for a reply's own tokens is
 * bounded, and what was looked at here must not make it cheaper. Where a draft takes too much work
 * itself, all behind it is let through.
 */
export class DraftReader {
  readonly #grammar: CompiledGrammar;
  readonly #automaton: Automaton;
  /** Behind the tokens that were read. */
  #place: LookAhead = { after: (id) => this.#after(null, id) };
  #unread: TokenId[] = [];

  constructor(grammar: CompiledGrammar) {
    this.#grammar = grammar;
    this.#automaton = grammar.draftAutomaton;
  }

  /** A token that the reply has from now on. It is read once somebody looks ahead. */
  commit(id: TokenId): void {
    this.#unread.push(id);
  }

  ahead(): LookAhead {
    for (const id of this.#unread) this.#place = this.#place.after(id) ?? nothingAhead;
    this.#unread = [];
    return this.#place;
  }

  /** @param from null: where nothing has been read */
  #after(from: ParseState | null, id: TokenId): LookAhead | null {
    const { eosIds, tokens, tokenBytes } = this.#grammar;
    this.#automaton.beginToken();
    try {
      const state = from ?? this.#automaton.start;
      if (eosIds.includes(id)) return state.ended ? nothingAhead : null;
      const after = hasToken(tokens, id) ? this.#automaton.read(state, tokenBytes(id)) : null;
      return after && { after: (next) => this.#after(after, next) };
    } catch (cause) {
      if (!(cause instanceof InputError)) throw cause;
      return anythingAhead;
    }
  }
}

import { invariant } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { hasToken, type LookAhead, type TokenSet } from "../sampling/constraint.ts";
import type { CompiledGrammar } from "./compiled-grammar.ts";
import { DraftReader } from "./draft-reader.ts";
import type { ParseState } from "./parse-state.ts";

/** Holds one reply to a grammar, token by token, and ends it in time where its tokens are few. */
export class ReplyGrammar {
  readonly #grammar: CompiledGrammar;
  readonly #drafts: DraftReader;
  readonly #allowed: TokenSet;
  /** Of those, the ones that leave room for an ending. */
  readonly #roomy: TokenSet;
  /** Null once eos has come. */
  #state: ParseState | null;
  /** Whether `#allowed` is of the state at hand. */
  #current = false;
  /** What ends the reply from here on, as found for this state or one before; null: not known. */
  #ending: readonly TokenId[] | null = null;

  constructor(grammar: CompiledGrammar) {
    this.#grammar = grammar;
    this.#drafts = new DraftReader(grammar);
    grammar.automaton.beginToken();
    this.#state = grammar.automaton.start;
    this.#allowed = new Int32Array(grammar.words);
    this.#roomy = new Int32Array(grammar.words);
  }

  /**
   * The few tokens that end the reply in its form; none where it may end already. Null: too many.
   * Once the first of them has come, there are no more than the others.
   */
  ending(): readonly TokenId[] | null {
    const found = this.#grammar.endings.tokens(this.#alive());
    const kept = this.#ending;
    if (!kept || (found && found.length < kept.length)) this.#ending = found;
    return this.#ending;
  }

  /**
   * The token that comes next where what ends the reply, with eos, needs all tokens that are left;
   * else null.
   */
  forced(tokensLeft: number): TokenId | null {
    const ending = this.#endingFor(tokensLeft);
    if (ending?.length !== tokensLeft - 1) return null;
    return ending[0] ?? this.#grammar.eosIds[0]!;
  }

  /**
   * The tokens that may come next, at least one; eos tokens are among them where the reply may end.
   * Where it can still be ended in its form with the tokens that are left, it can be behind each of
   * them. The set is the grammar's own, and stays as it is until the next commit.
   * @throws InputError where the grammar is too ambiguous to be followed
   */
  allowed(tokensLeft: number = Number.POSITIVE_INFINITY): TokenSet {
    const { automaton, endings } = this.#grammar;
    automaton.beginToken();
    const all = this.#allAllowed();
    const ending = this.#endingFor(tokensLeft);
    if (!ending) return all;
    this.#roomy.set(all);
    endings.narrow(this.#alive(), tokensLeft - 2, this.#roomy);
    // The rest of an ending may be shorter than what would be found behind its first token.
    const [first] = ending;
    if (first !== undefined) this.#roomy[first >>> 5]! |= 1 << (first & 31);
    return this.#roomy;
  }

  /**
   * A token that the reply has from now on, one of those that were allowed.
   * @throws InputError where the grammar is too ambiguous to be followed
   */
  commit(id: TokenId): void {
    const { automaton, eosIds, tokenBytes } = this.#grammar;
    automaton.beginToken();
    invariant(hasToken(this.#allAllowed(), id), `token ${id}, which the grammar refuses`);
    this.#current = false;
    this.#ending = this.#ending?.[0] === id ? this.#ending.slice(1) : null;
    this.#drafts.commit(id);
    this.#state = eosIds.includes(id) ? null : automaton.read(this.#alive(), tokenBytes(id));
  }

  /** Where drafts begin. Whether a reply can still be ended in time behind them is not looked at. */
  ahead(): LookAhead {
    return this.#drafts.ahead();
  }

  #allAllowed(): TokenSet {
    const state = this.#alive();
    if (this.#current) return this.#allowed;
    const { masks, eosIds } = this.#grammar;
    this.#allowed.fill(0);
    masks.add(state, this.#allowed);
    if (state.ended) for (const id of eosIds) this.#allowed[id >>> 5]! |= 1 << (id & 31);
    this.#current = true;
    return this.#allowed;
  }

  /** What ends the reply, where that is to be seen to and there is room for it and eos. */
  #endingFor(tokensLeft: number): readonly TokenId[] | null {
    if (this.#grammar.eosIds.length === 0) return null;
    const { endings } = this.#grammar;
    const bytes = endings.bytes(this.#alive());
    if (bytes === Number.POSITIVE_INFINITY) return null;
    if (tokensLeft > bytes + endings.spareTokens) return null;
    const ending = this.ending();
    return ending && ending.length < tokensLeft ? ending : null;
  }

  #alive(): ParseState {
    invariant(this.#state !== null, "a grammar that was used behind its reply's end");
    return this.#state;
  }
}

import type { TokenId } from "../ids.ts";
import type { TokenSet } from "../sampling/constraint.ts";
import type { Automaton } from "./automaton.ts";
import type { EndingTokens } from "./ending-tokens.ts";
import type { TokenMasks } from "./token-masks.ts";

/** A grammar made ready for a vocabulary. Replies share it. */
export interface CompiledGrammar {
  readonly automaton: Automaton;
  /** Another one for drafts. */
  readonly draftAutomaton: Automaton;
  readonly masks: TokenMasks;
  readonly endings: EndingTokens;
  /** Instructions of its program. */
  readonly places: number;
  /** Words of a set of all tokens that the model has. */
  readonly words: number;
  readonly eosIds: readonly TokenId[];
  /** Those that are text. */
  readonly tokens: TokenSet;
  readonly tokenBytes: (id: TokenId) => Uint8Array;
}

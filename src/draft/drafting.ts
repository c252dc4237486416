import type { Position, TokenId } from "../ids.ts";
import type { SamplingParams } from "../sampling/params.ts";
import type { Lattice } from "./lattice.ts";
import type { Proposal } from "./proposal.ts";

/** What a stream wants of the next round. */
export type DraftWish =
  /** The pending token alone. */
  | { readonly kind: "none" }
  | { readonly kind: "proposal"; readonly proposal: Proposal }
  /** A block of the model drafter's. */
  | { readonly kind: "block" };

/** Proposes for one stream, and learns from what became of it. Only speed depends on it. */
export interface Drafting {
  /** A token that the stream has now: of its prompt, or of its reply. */
  push(id: TokenId): void;
  /**
   * @param most how many tokens may be proposed, at least 1
   * @param blocks whether there is a model drafter with room for a block
   * @param streams how many share the round, this one among them
   */
  wish(most: number, blocks: boolean, streams: number): DraftWish;
  /**
   * Makes a proposal of a block. Null: none is worth its rows.
   * @param anchor the pending token. @param position of the first token to propose
   */
  choose(lattice: Lattice, anchor: TokenId, position: Position, most: number): Proposal | null;
  /**
   * How a proposal fared.
   * @param accepted how many of its tokens the reply has
   * @param missed whether one of them was wrong; else the reply ended, or all were right
   * @param ms what the round took; null where it wasn't this stream's alone
   */
  landed(proposal: Proposal, accepted: number, missed: boolean, ms: number | null): void;
  /** A round for which a wish was asked, and that had no proposal, has ended. */
  idle(ms: number | null): void;
}

/** Gives each stream its own, which has been told of no token yet. */
export type DraftingSource = (sampling: SamplingParams) => Drafting;

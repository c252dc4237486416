import type { HeldState } from "../backend/backend.ts";
import type { PageId } from "../ids.ts";
import type { TokenPrefix } from "./token-prefix.ts";

/**
 * Where a prefix ends. history: of the rendered conversation; rewind: before the latest user message;
 * reply: of a reply, as it was generated or as the next turn renders it; shared: of what conversations
 * have in common; cut: somewhere in a long prompt; parked: where a stream had to wait.
 */
export type PrefixKind = "history" | "rewind" | "reply" | "shared" | "cut" | "parked";

/** A state at the end of some tokens, from which a prompt that begins with them can go on. */
export interface CachedPrefix extends TokenPrefix {
  readonly kind: PrefixKind;
  /** Whether the drafter's keys and values of these rows are in the pages. */
  readonly context: boolean;
  readonly held: HeldState;
  readonly pages: readonly PageId[];
}

/** What is to be cached. */
export interface NewPrefix extends Omit<CachedPrefix, "held"> {
  /** Whether it belongs to a conversation that went on from a cached state. */
  readonly proven: boolean;
}

/** A cached prefix with what eviction goes by. */
export interface Entry extends CachedPrefix {
  /** Grows with every use. */
  usedAt: number;
  proven: boolean;
  /** Whether its conversation has gone on, past the place to which an edit would return. */
  superseded: boolean;
}

/** Why nothing of a prompt was cached. */
export type CacheMiss = "off" | "no_match" | "evicted" | "no_drafter_context";

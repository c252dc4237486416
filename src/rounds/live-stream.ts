import type { Candidates } from "../backend/candidates.ts";
import type { Drafting } from "../draft/drafting.ts";
import type { BackendError, DeltafoldError } from "../errors.ts";
import type { SlotId, StreamId, TokenId } from "../ids.ts";
import type { SamplingParams } from "../sampling/params.ts";
import { Sampler } from "../sampling/sampler.ts";
import type { PageTable } from "../state/kv-pages.ts";
import { SpeculativeCounter, type SpeculativeCounts } from "./speculative.ts";

/** What the rounds need to know of a request. */
export interface RoundRequest {
  /** At least one. */
  readonly promptIds: readonly TokenId[];
  /** At least one. */
  readonly maxTokens: number;
  readonly sampling: SamplingParams;
  /** Tokens that end the reply; they are its last token. */
  readonly eosIds: ReadonlySet<TokenId>;
  /** Whether the outcome carries the state's fingerprint. */
  readonly fingerprint: boolean;
  /** False: the serial reference, a row a round. */
  readonly draft: boolean;
}

/** Hears what happens to a stream, from inside a round: never slow, never throwing. */
export interface RoundSink {
  prefilled(): void;
  /** A committed token. Returns true where the reply ends here (a stop string). */
  token(id: TokenId): boolean;
  finished(outcome: RoundOutcome): void;
  /** Where it is there: the whole row that the next token is drawn from. */
  row?(candidates: Candidates): void;
}

export interface RoundOutcome {
  readonly reason: "stop" | "length" | "cancelled" | "error";
  readonly error: DeltafoldError | BackendError | null;
  /** SHA-256 of the final state, where it was asked for and the reply ended by itself. */
  readonly stateSha: string | null;
  /** The same of the drafter's context; null where the stream has none. */
  readonly contextSha: string | null;
  readonly speculative: SpeculativeCounts;
}

/** How a reply ends by itself, or fails. */
export interface StreamEnd {
  readonly reason: "stop" | "length" | "error";
  readonly error: DeltafoldError | null;
}

/** One request's timeline on the device. */
export class LiveStream {
  readonly id: StreamId;
  readonly request: RoundRequest;
  readonly sink: RoundSink;
  readonly sampler: Sampler;
  /** Null where nothing is drafted. */
  readonly drafting: Drafting | null;
  readonly speculative: SpeculativeCounter = new SpeculativeCounter();
  phase: "waiting" | "filling" | "decoding" | "done" = "waiting";
  cancelled = false;
  slot: SlotId | null = null;
  pages: PageTable | null = null;
  /** Rows that the slot's state and pages hold. */
  rows = 0;
  /** Of these, how many the drafter was given. */
  contextRows = 0;
  /** The last drawn token: delivered, not yet fed. */
  pending: TokenId = -1;
  replyTokens = 0;

  constructor(id: StreamId, request: RoundRequest, sink: RoundSink, drafting: Drafting | null) {
    this.id = id;
    this.request = request;
    this.sink = sink;
    this.sampler = new Sampler(request.sampling, request.promptIds);
    this.drafting = drafting;
  }

  get promptLeft(): number {
    return this.request.promptIds.length - this.rows;
  }

  /** How many of a row's first candidates its draws read; 0: the whole row. */
  get candidatesNeeded(): number {
    return this.sink.row ? 0 : this.sampler.candidatesNeeded;
  }

  /** Tokens that the reply may still have. */
  get tokensLeft(): number {
    return this.request.maxTokens - this.replyTokens;
  }
}

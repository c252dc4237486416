import type { BackendError, DeltafoldError } from "../errors.ts";
import type { SlotId, StreamId, TokenId } from "../ids.ts";
import type { SamplingParams } from "../sampling/params.ts";
import type { PageTable } from "../state/kv-pages.ts";

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
}

/** Hears what happens to a stream, from inside a round: never slow, never throwing. */
export interface RoundSink {
  prefilled(): void;
  /** A committed token. Returns true where the reply ends here (a stop string). */
  token(id: TokenId): boolean;
  finished(outcome: RoundOutcome): void;
}

export interface RoundOutcome {
  readonly reason: "stop" | "length" | "cancelled" | "error";
  readonly error: DeltafoldError | BackendError | null;
  /** SHA-256 of the final state, where it was asked for and the reply ended by itself. */
  readonly stateSha: string | null;
}

/** One request's timeline on the device. */
export class LiveStream {
  readonly id: StreamId;
  readonly request: RoundRequest;
  readonly sink: RoundSink;
  phase: "waiting" | "filling" | "decoding" | "done" = "waiting";
  cancelled = false;
  slot: SlotId | null = null;
  pages: PageTable | null = null;
  /** Rows that the slot's state and pages hold. */
  rows = 0;
  /** The last drawn token: delivered, not yet fed. */
  pending: TokenId = -1;
  replyTokens = 0;

  constructor(id: StreamId, request: RoundRequest, sink: RoundSink) {
    this.id = id;
    this.request = request;
    this.sink = sink;
  }

  get promptLeft(): number {
    return this.request.promptIds.length - this.rows;
  }
}

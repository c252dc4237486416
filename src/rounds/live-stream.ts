import type { Candidates } from "../backend/candidates.ts";
import type { Drafting } from "../draft/drafting.ts";
import type { BackendError, DeltafoldError } from "../errors.ts";
import type { Position, SlotId, StreamId, TokenId } from "../ids.ts";
import type { DrawChances } from "../sampling/chances.ts";
import type { DrawConstraint } from "../sampling/constraint.ts";
import type { SamplingParams } from "../sampling/params.ts";
import { Sampler } from "../sampling/sampler.ts";
import type { CacheMiss, PrefixKind } from "../state/cached-prefix.ts";
import { type PageTable, pagesFor } from "../state/kv-pages.ts";
import type { SpillEntry } from "../state/spill-file.ts";
import { SpeculativeCounter, type SpeculativeCounts } from "./speculative.ts";

/** What the rounds need to know of a request. */
export interface RoundRequest {
  /** At least one. */
  readonly promptIds: readonly TokenId[];
  /** 0: only the prompt is computed. */
  readonly maxTokens: number;
  readonly sampling: SamplingParams;
  /** Tokens that end the reply; they are its last token. */
  readonly eosIds: ReadonlySet<TokenId>;
  /** Whether the outcome carries the state's fingerprint. */
  readonly fingerprint: boolean;
  /** False: the serial reference, a row a round. */
  readonly draft: boolean;
  /** Where states of the prompt are cached, in order. Absent: the cache is of no concern to it. */
  readonly marks?: readonly PrefixMark[];
  /**
   * A background stream has its turn while no other is there, or once it has waited for a minute.
   * Foreground unless said.
   */
  readonly priority?: "foreground" | "background";
  /** What the reply may be; one stream's own. */
  readonly constraint?: DrawConstraint;
  /** With each token comes how likely it was, and so many of the likeliest. */
  readonly topChances?: number;
  /** The same for the prompt's tokens but the first: then `marks` must be absent. */
  readonly promptChances?: boolean;
}

/** Whether a prompt is computed for what it leaves in the cache, and nobody waits for anything. */
export const onlyWarms = ({ maxTokens, promptChances = false }: RoundRequest): boolean =>
  maxTokens === 0 && !promptChances;

/** A place in a prompt whose state is kept. */
export interface PrefixMark {
  /** Tokens up to there. */
  readonly rows: number;
  readonly kind: PrefixKind;
}

/** Hears what happens to a stream, from inside a round: never slow, never throwing. */
export interface RoundSink {
  prefilled(): void;
  /**
   * A committed token, with its chances where they were asked for. Returns true where the reply ends
   * here (a stop string).
   */
  token(id: TokenId, chances: DrawChances | null): boolean;
  /** The chances of a prompt's token; after a device was given away they may come again. */
  promptToken?(position: Position, chances: DrawChances): void;
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
  /** Prompt tokens that were not computed, because their state was there. */
  readonly cachedRows: number;
  /** Why there were none; null where there were. */
  readonly cacheMiss: CacheMiss | null;
  /** For how long it waited until it first had a slot, in ms; null where it never had one. */
  readonly queueMs: number | null;
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
  /** The prompt and the reply so far. */
  readonly ids: TokenId[];
  phase: "waiting" | "filling" | "decoding" | "done" = "waiting";
  cancelled = false;
  slot: SlotId | null = null;
  pages: PageTable | null = null;
  /** Rows that the slot's state and pages hold. */
  rows = 0;
  /** Of these, how many the drafter was given. */
  contextRows = 0;
  replyTokens = 0;
  /** Whether it was seen, since it has its slot, where it can go on from. */
  begun = false;
  /** Whether it has yielded for so long that it doesn't any more. */
  promoted = false;
  /** Chunks that other prompts were given while it could have had one. */
  passedOver = 0;
  /** What the cache had for its prompt; null before that was seen. */
  cached: { readonly rows: number; readonly miss: CacheMiss | null } | null = null;
  /** Ends when its state was read from disk; null while nothing is read. */
  reading: Promise<void> | null = null;
  /** What was read; null: nothing usable. Undefined before. */
  found: SpillEntry | null | undefined = undefined;
  /** Whether it goes on from what a conversation left. */
  proven = false;

  /** When it came. */
  readonly atMs: number;
  /** When it first had a slot. */
  admittedMs: number | null = null;

  constructor(
    id: StreamId,
    request: RoundRequest,
    sink: RoundSink,
    drafting: Drafting | null,
    atMs: number,
  ) {
    this.id = id;
    this.atMs = atMs;
    this.request = request;
    this.sink = sink;
    this.sampler = new Sampler(request.sampling, request.promptIds, request.constraint);
    this.drafting = drafting;
    this.ids = [...request.promptIds];
  }

  get background(): boolean {
    return this.request.priority === "background" && !this.promoted;
  }

  /** Tokens that its state has yet to be fed before it decodes. */
  get toFill(): number {
    return this.ids.length - this.rows;
  }

  /** Of a decoding stream: the last drawn token, delivered and not yet fed. */
  get pending(): TokenId {
    return this.ids.at(-1)!;
  }

  /** How many of a row's first candidates its draws read; 0: the whole row. */
  get candidatesNeeded(): number {
    const { topChances, promptChances = false } = this.request;
    const whole = this.sink.row || topChances !== undefined || promptChances;
    return whole ? 0 : this.sampler.candidatesNeeded;
  }

  /** Tokens that the reply may still have. */
  get tokensLeft(): number {
    return this.request.maxTokens - this.replyTokens;
  }

  /** Pages that it may come to need. */
  get pagesMost(): number {
    return pagesFor(this.request.promptIds.length + this.request.maxTokens);
  }
}

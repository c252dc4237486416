import type { Clock } from "./clock.ts";
import { type DeltafoldError, InvariantError } from "./errors.ts";
import type { TokenId } from "./ids.ts";
import type { ReplyText } from "./reply-text.ts";
import type { RoundOutcome, RoundSink } from "./rounds/live-stream.ts";
import type { SpeculativeCounts } from "./rounds/speculative.ts";
import { tokenSha } from "./sampling/seed.ts";
import type { CacheMiss } from "./state/cached-prefix.ts";
import { joinEvents, type ReplyEvent } from "./text/reply-parser.ts";

/** A reply that has ended. */
export interface Reply {
  /** Every token drawn, the eos token included. */
  readonly ids: readonly TokenId[];
  /** The whole text, before reasoning and calls are split off; eos and stop string left out. */
  readonly text: string;
  readonly reasoning: string;
  readonly content: string;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
  readonly finishReason: "stop" | "length" | "tool_calls" | "cancelled";
  /** The stop string that ended it. */
  readonly stopSequence: string | null;
  readonly promptTokens: number;
  /** Prompt tokens that came from the cache. */
  readonly cachedTokens: number;
  /** Why there were none; null where there were. */
  readonly cacheMiss: CacheMiss | null;
  /** First 12 hex digits of SHA-256 over the ids in decimal joined by commas. */
  readonly tokenSha: string;
  /** SHA-256 over the final state; null unless asked for. */
  readonly stateSha: string | null;
  readonly timings: ReplyTimings;
  /** What drafting did for it. */
  readonly speculative: SpeculativeCounts;
}

export interface ReplyTimings {
  /** From the request to the first token: queue and prompt. */
  readonly prefillMs: number;
  /** From the first token to the last. */
  readonly decodeMs: number;
  /** Tokens after the first, per second of decoding; null for replies of one token. */
  readonly tokensPerSecond: number | null;
}

/**
 * One request's reply as it comes. Iterate for its parts, or await `result`; both throw where the
 * reply fails. Breaking out of the loop cancels the request.
 */
export class Stream implements AsyncIterable<ReplyEvent> {
  readonly promptTokens: number;
  readonly result: Promise<Reply>;
  /** Resolves with the first token, or with the end where there is none; throws where that fails. */
  readonly started: Promise<void>;
  readonly #text: ReplyText;
  readonly #clock: Clock;
  readonly #ids: TokenId[] = [];
  readonly #events: ReplyEvent[] = [];
  readonly #resolve: (reply: Reply) => void;
  readonly #reject: (error: DeltafoldError) => void;
  readonly #start: () => void;
  readonly #failStart: (error: DeltafoldError) => void;
  readonly #startMs: number;
  #firstMs: number;
  #lastMs: number;
  #done = false;
  #error: DeltafoldError | null = null;
  readonly #wakers = new Set<() => void>();
  #cancel: () => void = () => {};

  constructor(promptTokens: number, text: ReplyText, clock: Clock) {
    this.promptTokens = promptTokens;
    this.#text = text;
    this.#clock = clock;
    this.#startMs = clock.nowMs();
    this.#firstMs = this.#startMs;
    this.#lastMs = this.#startMs;
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    this.result = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    // Who iterates hears of a failure there.
    promise.catch(() => {});
    const started = Promise.withResolvers<void>();
    started.promise.catch(() => {});
    this.started = started.promise;
    this.#start = started.resolve;
    this.#failStart = started.reject;
  }

  /** Ends the reply before its next round; the result's finish reason is then "cancelled". */
  cancel(): void {
    this.#cancel();
  }

  /** Connects the stream to the rounds that feed it. */
  attach(submit: (sink: RoundSink) => () => void): this {
    this.#cancel = submit({
      prefilled: () => {
        this.#firstMs = this.#clock.nowMs();
        this.#start();
      },
      token: (id) => this.#token(id),
      finished: (outcome) => this.#finish(outcome),
    });
    return this;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ReplyEvent> {
    let next = 0;
    try {
      for (;;) {
        while (next < this.#events.length) yield this.#events[next++]!;
        if (this.#error) throw this.#error;
        if (this.#done) return;
        await new Promise<void>((resolve) => {
          this.#wakers.add(resolve);
        });
      }
    } finally {
      if (!this.#done) this.cancel();
    }
  }

  #token(id: TokenId): boolean {
    this.#ids.push(id);
    this.#lastMs = this.#clock.nowMs();
    this.#emit(this.#text.push(id));
    return this.#text.stopped !== null;
  }

  #finish(outcome: RoundOutcome): void {
    let { error } = outcome;
    try {
      this.#emit(this.#text.end());
    } catch (cause) {
      error ??= new InvariantError(`the reply's text could not be ended: ${cause}`);
    }
    this.#done = true;
    if (error) {
      this.#error = error;
      this.#failStart(error);
      this.#reject(error);
    } else {
      this.#start();
      this.#resolve(this.#reply(outcome));
    }
    this.#emit([]);
  }

  #emit(events: readonly ReplyEvent[]): void {
    this.#events.push(...events);
    for (const wake of this.#wakers) wake();
    this.#wakers.clear();
  }

  #reply(outcome: RoundOutcome): Reply {
    const parts = joinEvents(this.#events);
    const { reason } = outcome;
    const called = parts.toolCalls.length > 0 && reason === "stop";
    const decodeMs = this.#lastMs - this.#firstMs;
    const later = this.#ids.length - 1;
    return {
      ids: this.#ids,
      text: this.#text.text,
      ...parts,
      finishReason: called ? "tool_calls" : (reason as Exclude<typeof reason, "error">),
      stopSequence: this.#text.stopped,
      promptTokens: this.promptTokens,
      cachedTokens: outcome.cachedRows,
      cacheMiss: outcome.cacheMiss,
      tokenSha: tokenSha(this.#ids),
      stateSha: outcome.stateSha,
      speculative: outcome.speculative,
      timings: {
        prefillMs: this.#firstMs - this.#startMs,
        decodeMs,
        tokensPerSecond: later > 0 && decodeMs > 0 ? (later / decodeMs) * 1000 : null,
      },
    };
  }
}

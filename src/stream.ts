import type { Clock } from "./clock.ts";
import { type DeltafoldError, InvariantError } from "./errors.ts";
import type { TokenId } from "./ids.ts";
import type { ReplyText } from "./reply-text.ts";
import type { RoundOutcome, RoundSink } from "./rounds/live-stream.ts";
import type { SpeculativeCounts } from "./rounds/speculative.ts";
import type { Chance, DrawChances } from "./sampling/chances.ts";
import { tokenSha } from "./sampling/seed.ts";
import type { CacheMiss } from "./state/cached-prefix.ts";
import { joinParts, type ReplyPart } from "./text/reply-parser.ts";

/** A token and its natural log probability, as the model gave it. */
export interface TokenChance {
  readonly id: TokenId;
  /** Alone: characters that several tokens share are U+FFFD, and `bytes` say what they are. */
  readonly text: string;
  readonly bytes: Uint8Array;
  readonly logprob: number;
}

/** A token of a reply. */
export interface TokenLogprob extends TokenChance {
  /** The likeliest at its place, the likeliest first: as many as were asked for. */
  readonly top: readonly TokenChance[];
}

/** A token of a prompt; nothing says how likely the first was. */
export type PromptLogprob = Omit<TokenLogprob, "logprob"> & { readonly logprob: number | null };

/** A piece of a reply as it comes. */
export type ReplyEvent =
  | ReplyPart
  /** Tokens that the reply has from now on; their text may be held back for a while. */
  | { readonly type: "logprobs"; readonly tokens: readonly TokenLogprob[] };

/** A reply that has ended. */
export interface Reply {
  /** Every token drawn, the eos token included. */
  readonly ids: readonly TokenId[];
  /** Its parts in the order in which they came. */
  readonly events: readonly ReplyEvent[];
  /** The whole text, before reasoning and calls are split off; eos and stop string left out. */
  readonly text: string;
  readonly reasoning: string;
  readonly content: string;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
  readonly finishReason: "stop" | "length" | "tool_calls" | "cancelled";
  /** The stop string that ended it. */
  readonly stopSequence: string | null;
  /** Tokens of `ids` in its think block, the closing tag's among them. */
  readonly reasoningTokens: number;
  /** Of each of `ids`; null unless asked for. */
  readonly logprobs: readonly TokenLogprob[] | null;
  /** Of each of the prompt's tokens; null unless asked for. */
  readonly promptLogprobs: readonly PromptLogprob[] | null;
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
  /** For how long it waited for a slot, in ms; null before its end, and where it never had one. */
  queueMs: number | null = null;
  readonly #text: ReplyText;
  readonly #clock: Clock;
  readonly #ids: TokenId[] = [];
  readonly #logprobs: TokenLogprob[] | null;
  readonly #promptLogprobs: PromptLogprob[] | null;
  #reasoningTokens = 0;
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

  /** @param logprobs whether the reply's tokens come with theirs, and whether the prompt's do */
  constructor(
    promptIds: readonly TokenId[],
    text: ReplyText,
    clock: Clock,
    logprobs: { readonly reply: boolean; readonly prompt: boolean },
  ) {
    this.promptTokens = promptIds.length;
    this.#text = text;
    this.#logprobs = logprobs.reply ? [] : null;
    this.#promptLogprobs = logprobs.prompt
      ? promptIds.map((id) => ({ id, ...text.tokenText(id), logprob: null, top: [] }))
      : null;
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

  /** When it was asked for, by its engine's clock. */
  get startMs(): number {
    return this.#startMs;
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
      token: (id, chances) => this.#token(id, chances),
      promptToken: (position, chances) => {
        this.#promptLogprobs![position] = this.#logprobOf(chances);
      },
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

  #token(id: TokenId, chances: DrawChances | null): boolean {
    this.#ids.push(id);
    this.#lastMs = this.#clock.nowMs();
    if (this.#text.inReasoning) this.#reasoningTokens++;
    const events: ReplyEvent[] = this.#text.push(id);
    if (chances && this.#logprobs) {
      const logprob = this.#logprobOf(chances);
      this.#logprobs.push(logprob);
      events.unshift({ type: "logprobs", tokens: [logprob] });
    }
    this.#emit(events);
    return this.#text.ended;
  }

  #logprobOf({ top, ...drawn }: DrawChances): TokenLogprob {
    const named = (chance: Chance) => ({ ...chance, ...this.#text.tokenText(chance.id) });
    return { ...named(drawn), top: top.map(named) };
  }

  #finish(outcome: RoundOutcome): void {
    let { error } = outcome;
    this.queueMs = outcome.queueMs;
    try {
      this.#emit(this.#text.end());
    } catch (cause) {
      error ??= new InvariantError(`the reply's text could not be ended: ${cause}`);
    }
    this.#done = true;
    // Where there is no token, all of it was the prompt's.
    if (this.#ids.length === 0) {
      this.#firstMs = this.#clock.nowMs();
      this.#lastMs = this.#firstMs;
    }
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
    const parts = joinParts(this.#events.filter((event) => event.type !== "logprobs"));
    const { reason } = outcome;
    const called = this.#text.callsEnded > 0 && reason === "stop";
    const decodeMs = this.#lastMs - this.#firstMs;
    const later = this.#ids.length - 1;
    return {
      ids: this.#ids,
      events: this.#events,
      text: this.#text.text,
      ...parts,
      finishReason: called ? "tool_calls" : (reason as Exclude<typeof reason, "error">),
      stopSequence: this.#text.stopped,
      reasoningTokens: this.#reasoningTokens,
      logprobs: this.#logprobs,
      promptLogprobs: this.#promptLogprobs,
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

import { type LiveStream, onlyWarms } from "./live-stream.ts";

/** What a loop has done since it began. Prompts that are only computed for the cache are none. */
export interface LoopTotals {
  /** Tokens of prompts that are known whole, computed or cached. */
  readonly promptTokens: number;
  /** Of these, those that were looked up in the cache, and those that it had. */
  readonly lookedUpTokens: number;
  readonly cachedTokens: number;
  readonly replyTokens: number;
  /** Passes in which streams decoded, and the reply tokens that came of them. */
  readonly decodeRounds: number;
  readonly roundTokens: number;
  /** Tokens proposed, and those of them that replies have. */
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
  /** How often a stream gave its slot and pages to others. */
  readonly parks: number;
}

/** Adds them up. */
export class LoopTally {
  readonly #totals = {
    promptTokens: 0,
    lookedUpTokens: 0,
    cachedTokens: 0,
    replyTokens: 0,
    decodeRounds: 0,
    roundTokens: 0,
    draftedTokens: 0,
    acceptedTokens: 0,
    parks: 0,
  };

  get totals(): LoopTotals {
    return { ...this.#totals };
  }

  /** The last of a stream's prompt is computed; one that was parked may say so again. */
  prompted({ request, cached, replyTokens }: LiveStream): void {
    if (replyTokens > 0 || onlyWarms(request)) return;
    const tokens = request.promptIds.length;
    this.#totals.promptTokens += tokens;
    if (!request.marks) return;
    this.#totals.lookedUpTokens += tokens;
    this.#totals.cachedTokens += cached?.rows ?? 0;
  }

  /** Begins a pass; what it returns counts what these streams got of it, however it ended. */
  began(pass: "prompt" | "round", streams: readonly LiveStream[]): () => void {
    const before = gotBy(streams);
    return () => {
      const after = gotBy(streams);
      const tokens = after.tokens - before.tokens;
      this.#totals.replyTokens += tokens;
      this.#totals.draftedTokens += after.drafted - before.drafted;
      this.#totals.acceptedTokens += after.accepted - before.accepted;
      if (pass === "prompt") return;
      this.#totals.decodeRounds++;
      this.#totals.roundTokens += tokens;
    };
  }

  parked(streams: number): void {
    this.#totals.parks += streams;
  }
}

function gotBy(streams: readonly LiveStream[]) {
  let [tokens, drafted, accepted] = [0, 0, 0];
  for (const { replyTokens, speculative } of streams) {
    tokens += replyTokens;
    drafted += speculative.drafted;
    accepted += speculative.accepted;
  }
  return { tokens, drafted, accepted };
}

import type { CallDelta, Chunk } from "../api/chunk.ts";
import type { Ending, Figures, Reply, ToolCall } from "./message.ts";

const endings: ReadonlySet<string> = new Set<Ending>(["stop", "length", "tool_calls"]);

/** Adds up the chunks of a streamed reply. */
export class ReplyBuilder {
  readonly #begun: Reply;
  #text = "";
  #reasoning = "";
  readonly #calls = new Map<number, ToolCall>();
  #ending: Ending = "stopped";
  #error: string | null = null;
  #figures: Figures;
  /** Chunks that brought a piece: about as many as tokens, since each token's text is sent at once. */
  pieces = 0;

  /** @param begun the reply before its first chunk */
  constructor(begun: Reply) {
    this.#begun = begun;
    this.#figures = begun.figures;
  }

  push(chunk: Chunk): void {
    const [choice] = chunk.choices ?? [];
    const { content, reasoning_content: reasoning, tool_calls: calls } = choice?.delta ?? {};
    this.#text += content ?? "";
    this.#reasoning += reasoning ?? "";
    for (const call of calls ?? []) this.#call(call);
    if (content || reasoning || calls?.length) this.pieces++;
    const ending = choice?.finish_reason;
    // A word that this page doesn't know ends a reply all the same.
    if (ending) this.#ending = endings.has(ending) ? (ending as Ending) : "stop";
    this.#figures = { ...this.#figures, ...figuresOf(chunk) };
  }

  /** It was never completed: something went wrong. */
  fail(error: string): void {
    this.#ending = "failed";
    this.#error = error;
  }

  /** The reply as far as it came; unless its end has come, it counts as stopped. */
  get reply(): Reply {
    return {
      ...this.#begun,
      text: this.#text,
      reasoning: this.#reasoning,
      toolCalls: [...this.#calls.values()],
      ending: this.#ending,
      error: this.#error,
      figures: this.#figures,
    };
  }

  #call({ index, id, function: named }: CallDelta): void {
    const known = this.#calls.get(index) ?? { id: "", name: "", arguments: "" };
    this.#calls.set(index, {
      id: id ?? known.id,
      name: named?.name ?? known.name,
      arguments: known.arguments + (named?.arguments ?? ""),
    });
  }
}

function figuresOf({ usage, timings, speculative, token_sha: tokenSha }: Chunk): Figures {
  return known({
    promptTokens: usage?.prompt_tokens,
    replyTokens: usage?.completion_tokens,
    cachedTokens: usage?.prompt_tokens_details?.cached_tokens,
    reasoningTokens: usage?.completion_tokens_details?.reasoning_tokens,
    prefillMs: timings?.prefill_ms,
    decodeMs: timings?.decode_ms,
    tokensPerSecond: timings?.tokens_per_second,
    cacheMissReason: timings?.cache_miss_reason,
    rounds: speculative?.rounds,
    drafted: speculative?.drafted,
    accepted: speculative?.accepted,
    tokensPerRound: speculative?.tokens_per_round,
    tokenSha,
  });
}

type Known<T> = { [Name in keyof T]?: Exclude<T[Name], undefined | null> };

/** Without what is absent. */
function known<T extends object>(fields: T): Known<T> {
  const entries = Object.entries(fields).filter(
    ([, value]) => value !== undefined && value !== null,
  );
  return Object.fromEntries(entries) as Known<T>;
}

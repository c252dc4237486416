import type { Engine, ReplyRequest } from "../../engine.ts";
import type { TokenId } from "../../ids.ts";
import { speculativeOf } from "../../serve/reply-extras.ts";
import type { Reply, Stream } from "../../stream.ts";
import type { CliIo } from "../io.ts";
import { printReply, speedLine } from "./print-reply.ts";

export type Prompt =
  | { readonly kind: "ids"; readonly ids: readonly TokenId[] }
  | { readonly kind: "text"; readonly text: string; readonly system: string | null };

export interface ReplyOptions {
  readonly prompt: Prompt;
  readonly request: ReplyRequest;
  readonly quiet: boolean;
  /** Prints one JSON object instead of the text. */
  readonly json: { readonly loadMs: number } | null;
}

/** Replies to one prompt. */
export async function reply(io: CliIo, engine: Engine, options: ReplyOptions): Promise<void> {
  const { prompt, request, json } = options;
  const stream = submit(engine, prompt, { ...request, fingerprint: json !== null });
  if (json) {
    const object = replyJson(await stream.result, json.loadMs);
    io.stdout.write(`${JSON.stringify(object)}\n`);
    return;
  }
  const done = await printReply(io, stream);
  if (!options.quiet) io.stderr.write(speedLine(done));
}

function submit(engine: Engine, prompt: Prompt, request: ReplyRequest): Stream {
  if (prompt.kind === "ids") return engine.complete({ prompt: prompt.ids, ...request });
  const { text, system } = prompt;
  const user = { role: "user", content: text };
  const messages = system === null ? [user] : [{ role: "system", content: system }, user];
  return engine.chat({ messages, ...request });
}

function replyJson(done: Reply, loadMs: number): Record<string, unknown> {
  const { prefillMs, decodeMs, tokensPerSecond } = done.timings;
  return {
    ids: done.ids,
    text: done.content,
    reasoning: done.reasoning,
    finish_reason: done.finishReason,
    prompt_tokens: done.promptTokens,
    cached_tokens: done.cachedTokens,
    cache_miss_reason: done.cacheMiss,
    token_sha: done.tokenSha,
    state_sha: done.stateSha,
    speculative: speculativeOf(done),
    timings: {
      load_ms: rounded(loadMs),
      prefill_ms: rounded(prefillMs),
      decode_ms: rounded(decodeMs),
      tokens_per_second: tokensPerSecond === null ? null : rounded(tokensPerSecond),
    },
  };
}

/** Three decimals: a microsecond is as much as a clock tells. */
const rounded = (value: number): number => Math.round(value * 1000) / 1000;

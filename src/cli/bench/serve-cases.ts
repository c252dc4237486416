import { systemClock } from "../../clock.ts";
import { randomInts } from "../gate/timeline.ts";
import {
  type HttpReply,
  joinReply,
  type ReplyObject,
  replyEvents,
  wholeReply,
} from "../reply-client.ts";
import { type ReplyKind, replyKinds } from "../reply-kinds.ts";
import type { Measured, ServeCase } from "./serve-turns.ts";

const chatPath = "/v1/chat/completions";
const textPath = "/v1/completions";
/** Every request is computed whole. */
const cold = { temperature: 0, cache_prompt: false };
/** Prompts are of ids that every vocabulary has. */
const idsMax = 256;
const seed = 20261201;

/** A streamed reply of one kind, to a client that has the server for itself. */
export class ReplyCase implements ServeCase {
  readonly kind: ReplyKind;
  readonly drafted: boolean;
  readonly #tokensMax: number;

  constructor(kind: ReplyKind, drafted: boolean, tokensMax: number) {
    this.kind = kind;
    this.drafted = drafted;
    this.#tokensMax = tokensMax;
  }

  async measure(url: string): Promise<Measured> {
    const body = { ...chat(this.kind.asked), max_tokens: this.#tokensMax, draft: this.drafted };
    const { reply, startMs, firstMs, lastMs } = await streamed(url, body);
    const tokensPerSecond = (1000 * (reply.tokens - 1)) / (lastMs - firstMs);
    return { tokensPerSecond, firstTokenMs: firstMs - startMs, ...sumOf([reply]) };
  }
}

/** A prompt up to its first token. */
export class PrefillCase implements ServeCase {
  readonly tokens: number;

  /** @param tokens of the prompt */
  constructor(tokens: number) {
    this.tokens = tokens;
  }

  async measure(url: string): Promise<Measured> {
    const random = randomInts(seed);
    const prompt = Array.from({ length: this.tokens }, () => random(idsMax));
    const startMs = systemClock.nowMs();
    const body = { ...cold, prompt, max_tokens: 1, ignore_eos: true };
    const reply = joinReply([await wholeReply(url + textPath, body)]);
    const ms = systemClock.nowMs() - startMs;
    return { tokensPerSecond: (1000 * this.tokens) / ms, firstTokenMs: ms, ...sumOf([reply]) };
  }
}

/** Streamed replies of all kinds at once. */
export class StreamsCase implements ServeCase {
  readonly streams: number;
  readonly drafted: boolean;
  readonly #tokensMax: number;

  constructor(streams: number, drafted: boolean, tokensMax: number) {
    this.streams = streams;
    this.drafted = drafted;
    this.#tokensMax = tokensMax;
  }

  async measure(url: string): Promise<Measured> {
    const startMs = systemClock.nowMs();
    const bodies = Array.from({ length: this.streams }, (_, at) => {
      return streamBody(at, this.drafted, this.#tokensMax);
    });
    const replies = await Promise.all(bodies.map((body) => streamed(url, body)));
    const lastMs = Math.max(...replies.map((reply) => reply.lastMs));
    const sum = sumOf(replies.map(({ reply }) => reply));
    return {
      tokensPerSecond: (1000 * sum.tokens) / (lastMs - startMs),
      firstTokenMs: Math.max(...replies.map(({ firstMs }) => firstMs)) - startMs,
      ...sum,
    };
  }
}

/** What each of so many streams says when nobody else is served. */
export async function aloneShas(
  url: string,
  streams: number,
  drafted: boolean,
  tokensMax: number,
): Promise<string[]> {
  const shas: string[] = [];
  for (let at = 0; at < streams; at++) {
    const { reply } = await streamed(url, streamBody(at, drafted, tokensMax));
    shas.push(reply.tokenSha);
  }
  return shas;
}

/** Every stream asks for something else, and all replies are as long. */
function streamBody(at: number, draft: boolean, tokensMax: number): object {
  const { asked } = replyKinds[at % replyKinds.length]!;
  return { ...chat(`${asked} ${at}`), draft, max_tokens: tokensMax, ignore_eos: true };
}

const chat = (content: string) => ({ ...cold, messages: [{ role: "user", content }] });

/** A reply, and when its first token and its last were there. */
async function streamed(
  url: string,
  body: object,
): Promise<{ reply: HttpReply; startMs: number; firstMs: number; lastMs: number }> {
  const startMs = systemClock.nowMs();
  let firstMs: number | null = null;
  let lastMs = startMs;
  const events: ReplyObject[] = [];
  for await (const event of replyEvents(url + chatPath, body)) {
    firstMs ??= systemClock.nowMs();
    const ended = event.choices?.some((choice) => choice.finish_reason !== null);
    if (ended) lastMs = systemClock.nowMs();
    events.push(event);
  }
  return { reply: joinReply(events), startMs, firstMs: firstMs ?? lastMs, lastMs };
}

function sumOf(replies: readonly HttpReply[]): Pick<Measured, "tokens" | "rounds" | "tokenShas"> {
  const sum = (of: (reply: HttpReply) => number) =>
    replies.reduce((total, reply) => total + of(reply), 0);
  return {
    tokens: sum(({ tokens }) => tokens),
    rounds: sum(({ speculative }) => speculative.rounds),
    tokenShas: replies.map(({ tokenSha }) => tokenSha),
  };
}

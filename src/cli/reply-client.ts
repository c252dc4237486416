/** A client of the server's own: what it says, in whole replies and in events. */
import { DeltafoldError } from "../errors.ts";

/** What a reply says, however it was sent. */
export interface HttpReply {
  readonly text: string;
  readonly reasoning: string;
  readonly finishReason: string;
  readonly promptTokens: number;
  readonly tokens: number;
  readonly tokenSha: string;
  readonly speculative: Speculative;
}

interface Speculative {
  readonly rounds: number;
  readonly drafted: number;
  readonly accepted: number;
}

/** A whole completion or chat, or an event of one. */
export interface ReplyObject {
  readonly choices?: readonly {
    readonly text?: string;
    readonly message?: Message;
    readonly delta?: Message;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number };
  readonly token_sha?: string;
  readonly speculative?: Speculative;
  readonly error?: { readonly message: string };
}

interface Message {
  readonly content?: string | null;
  readonly reasoning_content?: string;
}

/** What a server says about itself, as far as it is of use here. */
export interface Health {
  readonly model: string;
  readonly context_length: number;
  readonly backend: { readonly name: string; readonly device: string; readonly arithmetic: string };
}

/** @param url the server's */
export async function healthOf(url: string): Promise<Health> {
  return (await (await fetch(`${url}/health`)).json()) as Health;
}

/**
 * A request's reply, as the endpoint writes it.
 * @param url the endpoint's
 * @throws DeltafoldError where the server refuses or fails
 */
export async function wholeReply<T = ReplyObject>(url: string, body: object): Promise<T> {
  const response = await post(url, body);
  return (await response.json()) as T;
}

/**
 * The data of each event of a request's reply as it comes; comments are left out.
 * @param url the endpoint's
 * @throws DeltafoldError where the server refuses, or an event breaks off
 */
export async function* replyData(url: string, body: object): AsyncGenerator<string> {
  const { body: bytes } = await post(url, { ...body, stream: true });
  const decoder = new TextDecoder();
  let text = "";
  for await (const some of bytes!) {
    const frames = (text + decoder.decode(some, { stream: true })).split("\n\n");
    text = frames.pop()!;
    for (const frame of frames) {
      const lines = frame.split("\n").filter((line) => line.startsWith("data: "));
      if (lines.length > 0) yield lines.map((line) => line.slice("data: ".length)).join("\n");
    }
  }
  if (text !== "") throw failed(`an event broke off: ${text}`);
}

/**
 * The events of a completion or a chat as they come, its usage among them.
 * @param url the endpoint's
 * @throws DeltafoldError where the server refuses or fails, or the reply breaks off
 */
export async function* replyEvents(url: string, body: object): AsyncGenerator<ReplyObject> {
  const usage = { stream_options: { include_usage: true } };
  let ended = false;
  for await (const data of replyData(url, { ...body, ...usage })) {
    if (ended) throw failed(`the reply goes on behind its end: ${data}`);
    if (data === "[DONE]") ended = true;
    else yield eventOf(data);
  }
  if (!ended) throw failed("the reply broke off");
}

/**
 * What a whole completion or chat says, or all its events together.
 * @throws DeltafoldError where something is missing, or said twice
 */
export function joinReply(objects: readonly ReplyObject[]): HttpReply {
  const choices = objects.flatMap((object) => object.choices ?? []);
  const messages = choices.map(({ delta, message }) => delta ?? message ?? {});
  const usage = only(
    "usage",
    objects.flatMap((object) => object.usage ?? []),
  );
  const finished = choices.flatMap((choice) => choice.finish_reason ?? []);
  return {
    text: choices.map(({ text }, at) => text ?? messages[at]!.content ?? "").join(""),
    reasoning: messages.map((message) => message.reasoning_content ?? "").join(""),
    finishReason: only("finish_reason", finished),
    promptTokens: usage.prompt_tokens,
    tokens: usage.completion_tokens,
    tokenSha: only(
      "token_sha",
      objects.flatMap((object) => object.token_sha ?? []),
    ),
    speculative: only(
      "speculative",
      objects.flatMap((object) => object.speculative ?? []),
    ),
  };
}

function eventOf(data: string): ReplyObject {
  const event = JSON.parse(data) as ReplyObject;
  if (event.error) throw failed(event.error.message);
  return event;
}

async function post(url: string, body: object): Promise<Response> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (response.status !== 200) throw failed(`${response.status}: ${await response.text()}`);
  return response;
}

function only<T>(name: string, values: readonly T[]): T {
  const [value] = values;
  if (value !== undefined && values.length === 1) return value;
  throw failed(`the reply has ${values.length} times its ${name}`);
}

const failed = (message: string) => new DeltafoldError("reply_failed", message);

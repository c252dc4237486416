/** A client of /v1/messages. */
import { type HttpReply, replyData, wholeReply } from "../reply-client.ts";

interface Text {
  readonly text?: string;
  readonly thinking?: string;
}

/** What is known at the end of a message. */
interface End extends Pick<HttpReply, "speculative"> {
  readonly token_sha: string;
  readonly usage: {
    readonly input_tokens: number;
    readonly cache_read_input_tokens: number;
    readonly output_tokens: number;
  };
}

interface Message extends End {
  readonly content: readonly Text[];
  readonly stop_reason: string;
}

interface MessageEvent extends Partial<End> {
  readonly type: string;
  readonly delta?: Text & { readonly stop_reason?: string };
}

export async function readMessage(url: string, body: object): Promise<HttpReply> {
  const message = await wholeReply<Message>(url, body);
  return saidBy(message.content, message.stop_reason, message);
}

/** @throws Error where the message has no end */
export async function readMessageEvents(url: string, body: object): Promise<HttpReply> {
  const events: MessageEvent[] = [];
  for await (const data of replyData(url, body)) events.push(JSON.parse(data));
  const texts = events.flatMap(({ type, delta }) =>
    type === "content_block_delta" && delta ? [delta] : [],
  );
  const [end, stop] = events.slice(-2);
  if (end?.type !== "message_delta" || stop?.type !== "message_stop") {
    throw new Error(`the message ends in ${JSON.stringify(stop)}`);
  }
  return saidBy(texts, end.delta?.stop_reason, end as End);
}

function saidBy(
  texts: readonly Text[],
  reason: string | undefined,
  { usage, token_sha: tokenSha, speculative }: End,
): HttpReply {
  const reasons = new Map([
    ["end_turn", "stop"],
    ["max_tokens", "length"],
  ]);
  return {
    text: texts.map(({ text = "" }) => text).join(""),
    reasoning: texts.map(({ thinking = "" }) => thinking).join(""),
    finishReason: reasons.get(`${reason}`) ?? `${reason}`,
    promptTokens: usage.input_tokens + usage.cache_read_input_tokens,
    tokens: usage.output_tokens,
    tokenSha,
    speculative,
  };
}

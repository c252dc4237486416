/** A client of /v1/responses. */
import { type HttpReply, replyData, wholeReply } from "../reply-client.ts";

interface ResponseObject extends Pick<HttpReply, "speculative"> {
  readonly status: string;
  readonly output: readonly {
    readonly type: string;
    readonly content?: readonly { readonly text: string }[];
  }[];
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
  readonly token_sha: string;
}

interface ResponseEvent {
  readonly type: string;
  readonly delta?: string;
  readonly response?: ResponseObject;
}

export async function readResponse(url: string, body: object): Promise<HttpReply> {
  return saidBy(await wholeReply<ResponseObject>(url, body));
}

/** @throws Error where the response has no end, or isn't what its events were */
export async function readResponseEvents(url: string, body: object): Promise<HttpReply> {
  const events: ResponseEvent[] = [];
  for await (const data of replyData(url, body)) events.push(JSON.parse(data));
  const written = (type: string) =>
    events.map((event) => (event.type === type ? event.delta : "")).join("");
  const last = events.at(-1);
  if (!last?.response) throw new Error(`the response ends in ${JSON.stringify(last)}`);
  const said = saidBy(last.response);
  const pieces = [written("response.reasoning_text.delta"), written("response.output_text.delta")];
  const [began, ends] = [JSON.stringify(pieces), JSON.stringify([said.reasoning, said.text])];
  if (began !== ends) throw new Error(`the response ends as ${ends}, and its events said ${began}`);
  return said;
}

function saidBy(response: ResponseObject): HttpReply {
  const { status, output, usage, token_sha: tokenSha, speculative } = response;
  const written = (type: string) =>
    output
      .filter((item) => item.type === type)
      .flatMap(({ content = [] }) => content)
      .map(({ text }) => text)
      .join("");
  const reasons = new Map([
    ["completed", "stop"],
    ["incomplete", "length"],
  ]);
  return {
    text: written("message"),
    reasoning: written("reasoning"),
    finishReason: reasons.get(status) ?? status,
    promptTokens: usage.input_tokens,
    tokens: usage.output_tokens,
    tokenSha,
    speculative,
  };
}

import type { SamplingFields } from "../../sampling/params.ts";
import {
  type HttpReply,
  joinReply,
  type ReplyObject,
  replyEvents,
  wholeReply,
} from "../reply-client.ts";
import type { ReplyKind } from "../reply-kinds.ts";
import { readMessage, readMessageEvents } from "./http-messages.ts";
import { readResponse, readResponseEvents } from "./http-responses.ts";

/** How replies are drawn, by fields of a request that the command line has flags for. */
export type DrawFields = Omit<
  SamplingFields,
  "repetition_penalty" | "presence_penalty" | "frequency_penalty" | "logit_bias"
>;

/** As all forms but one call them. */
export type HttpFields = DrawFields & { readonly max_tokens: number };

/** One of the server's ways to ask for a reply. */
export interface HttpForm {
  readonly name: string;
  /** Whether the prompt is a text as it is, and not a chat's. */
  readonly raw: boolean;
  readonly path: string;
  body(kind: ReplyKind, fields: HttpFields): object;
  whole(url: string, body: object): Promise<HttpReply>;
  streamed(url: string, body: object): Promise<HttpReply>;
}

const asked = ({ asked: content }: ReplyKind) => [{ role: "user", content }];

/** OpenAI's older two share their objects. */
const completions = {
  whole: async (url: string, body: object) => joinReply([await wholeReply(url, body)]),
  streamed: async (url: string, body: object) => {
    const events: ReplyObject[] = [];
    for await (const event of replyEvents(url, body)) events.push(event);
    return joinReply(events);
  },
};

export const chatForm: HttpForm = {
  name: "chat",
  raw: false,
  path: "/v1/chat/completions",
  body: (kind, fields) => ({ ...fields, messages: asked(kind) }),
  ...completions,
};

/** It goes on past the model's own end. */
export const rawForm: HttpForm = {
  name: "raw",
  raw: true,
  path: "/v1/completions",
  body: (kind, fields) => ({ ...fields, prompt: kind.begun, ignore_eos: true }),
  ...completions,
};

export const responsesForm: HttpForm = {
  name: "response",
  raw: false,
  path: "/v1/responses",
  body: ({ asked: input }, { max_tokens, ...fields }) => ({
    ...fields,
    max_output_tokens: max_tokens,
    input,
    store: false,
  }),
  whole: readResponse,
  streamed: readResponseEvents,
};

export const messagesForm: HttpForm = {
  name: "message",
  raw: false,
  path: "/v1/messages",
  body: (kind, fields) => ({ ...fields, messages: asked(kind) }),
  whole: readMessage,
  streamed: readMessageEvents,
};

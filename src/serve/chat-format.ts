import type { ReplyEvent } from "../engine.ts";
import type { DeltafoldError } from "../errors.ts";
import type { Reply, TokenLogprob } from "../stream.ts";
import { errorBody } from "./error-reply.ts";
import { chatLogprobs } from "./logprobs-format.ts";
import { extrasOf, usageOf } from "./reply-extras.ts";
import { doneFrame, frame, type ReplyFormat, type ReplyHead, randomId } from "./reply-format.ts";

/** What was written of one choice so far. */
interface Written {
  calls: number;
  /** Of tokens whose chunk is still to come. */
  logprobs: TokenLogprob[];
}

/** chat.completion and chat.completion.chunk. */
export class ChatFormat implements ReplyFormat {
  readonly #head: ReplyHead;
  readonly #includeUsage: boolean;
  readonly #choices: readonly Written[];

  /** @param choices how many replies there are */
  constructor(head: ReplyHead, includeUsage: boolean, choices: number) {
    this.#head = head;
    this.#includeUsage = includeUsage;
    this.#choices = Array.from({ length: choices }, () => ({ calls: 0, logprobs: [] }));
  }

  whole(replies: readonly Reply[]): object {
    const [only] = replies.length === 1 ? replies : [];
    return {
      ...this.#head,
      object: "chat.completion",
      choices: replies.map((reply, index) => ({
        index,
        message: messageOf(reply),
        logprobs: reply.logprobs && chatLogprobs(reply.logprobs),
        finish_reason: reply.finishReason,
        ...(!only && extrasOf(reply)),
      })),
      usage: usageOf(replies),
      ...(only && extrasOf(only)),
    };
  }

  opening(): string {
    const delta = { role: "assistant", content: "" };
    return this.#choices.map((_, choice) => this.#chunk(choice, delta)).join("");
  }

  part(event: ReplyEvent, choice: number): string {
    const written = this.#choices[choice]!;
    if (event.type === "logprobs") {
      written.logprobs.push(...event.tokens);
      return "";
    }
    return this.#chunk(choice, deltaOf(event, written));
  }

  ended(reply: Reply, choice: number): string {
    return this.#chunk(choice, {}, reply.finishReason, extrasOf(reply));
  }

  closing(replies: readonly Reply[]): string {
    if (!this.#includeUsage) return doneFrame;
    return frame({ ...this.#chunkHead, choices: [], usage: usageOf(replies) }) + doneFrame;
  }

  failed(error: DeltafoldError): string {
    return frame(errorBody(error), "error") + doneFrame;
  }

  #chunk(
    index: number,
    delta: object,
    finish_reason: Reply["finishReason"] | null = null,
    extras: object = {},
  ): string {
    const written = this.#choices[index]!;
    const logprobs = written.logprobs.length > 0 ? chatLogprobs(written.logprobs) : null;
    written.logprobs = [];
    const choice = { index, delta, ...(logprobs && { logprobs }), finish_reason };
    return frame({ ...this.#chunkHead, choices: [choice], ...extras });
  }

  get #chunkHead(): object {
    return { ...this.#head, object: "chat.completion.chunk" };
  }
}

function deltaOf(event: Exclude<ReplyEvent, { type: "logprobs" }>, written: Written): object {
  if (event.type === "content") return { content: event.text };
  if (event.type === "reasoning") return { reasoning_content: event.text };
  if (event.type === "toolCall") {
    const index = written.calls++;
    return { tool_calls: [{ index, ...toolCall({ name: event.name, arguments: "" }) }] };
  }
  return { tool_calls: [{ index: written.calls - 1, function: { arguments: event.text } }] };
}

/** Content that a model wrote beside its calls is kept, as it is in a stream. */
function messageOf({ content, reasoning, toolCalls }: Reply): object {
  const called = toolCalls.length > 0;
  return {
    role: "assistant",
    content: called && content === "" ? null : content,
    refusal: null,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(called && { tool_calls: toolCalls.map(toolCall) }),
  };
}

function toolCall(call: { readonly name: string; readonly arguments: string }): object {
  const { name, arguments: written } = call;
  return { id: randomId("call_"), type: "function", function: { name, arguments: written } };
}

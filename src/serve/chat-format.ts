import type { ReplyEvent } from "../engine.ts";
import type { Reply } from "../stream.ts";
import { extrasOf, type ReplyFormat, type ReplyHead, randomId, usageOf } from "./reply-format.ts";

/** chat.completion and chat.completion.chunk. */
export class ChatFormat implements ReplyFormat {
  readonly #head: ReplyHead;
  readonly #includeUsage: boolean;
  #calls = 0;

  constructor(head: ReplyHead, includeUsage: boolean) {
    this.#head = head;
    this.#includeUsage = includeUsage;
  }

  whole(reply: Reply): object {
    const { finishReason: finish_reason } = reply;
    const message = messageOf(reply);
    return {
      ...this.#head,
      object: "chat.completion",
      choices: [{ index: 0, message, logprobs: null, finish_reason }],
      usage: usageOf(reply),
      ...extrasOf(reply),
    };
  }

  opening(): object[] {
    return [this.#chunk({ role: "assistant", content: "" }, null)];
  }

  part(event: ReplyEvent): object {
    if (event.type === "content") return this.#chunk({ content: event.text }, null);
    if (event.type === "reasoning") return this.#chunk({ reasoning_content: event.text }, null);
    const call = { index: this.#calls++, ...toolCall(event) };
    return this.#chunk({ tool_calls: [call] }, null);
  }

  closing(reply: Reply): object[] {
    const last = { ...this.#chunk({}, reply.finishReason), ...extrasOf(reply) };
    if (!this.#includeUsage) return [last];
    return [last, { ...this.#chunkHead(), choices: [], usage: usageOf(reply) }];
  }

  #chunk(delta: object, finish_reason: Reply["finishReason"] | null): object {
    return { ...this.#chunkHead(), choices: [{ index: 0, delta, finish_reason }] };
  }

  #chunkHead(): object {
    return { ...this.#head, object: "chat.completion.chunk" };
  }
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

import type { ReplyEvent } from "../engine.ts";
import { invariant } from "../errors.ts";
import type { Reply } from "../stream.ts";
import { extrasOf, type ReplyFormat, type ReplyHead, usageOf } from "./reply-format.ts";

/** text_completion, which chunks and whole replies share. */
export class CompletionFormat implements ReplyFormat {
  readonly #head: ReplyHead;
  readonly #includeUsage: boolean;

  constructor(head: ReplyHead, includeUsage: boolean) {
    this.#head = head;
    this.#includeUsage = includeUsage;
  }

  whole(reply: Reply): object {
    const object = this.#object(reply.text, reply.finishReason);
    return { ...object, usage: usageOf(reply), ...extrasOf(reply) };
  }

  opening(): object[] {
    return [];
  }

  part(event: ReplyEvent): object {
    invariant(event.type === "content", `a completion with ${event.type}`);
    return this.#object(event.text, null);
  }

  closing(reply: Reply): object[] {
    const last = { ...this.#object("", reply.finishReason), ...extrasOf(reply) };
    if (!this.#includeUsage) return [last];
    return [last, { ...this.#objectHead(), choices: [], usage: usageOf(reply) }];
  }

  #object(text: string, finish_reason: Reply["finishReason"] | null): object {
    return { ...this.#objectHead(), choices: [{ index: 0, text, logprobs: null, finish_reason }] };
  }

  #objectHead(): object {
    return { ...this.#head, object: "text_completion" };
  }
}

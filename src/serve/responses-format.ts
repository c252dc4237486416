import type { Clock } from "../clock.ts";
import type { ReplyEvent } from "../engine.ts";
import type { DeltafoldError } from "../errors.ts";
import type { Reply } from "../stream.ts";
import { extrasOf } from "./reply-extras.ts";
import { frame, type ReplyFormat, type ReplyHead } from "./reply-format.ts";
import { type ResponseEvent, ResponseOutput } from "./responses-output.ts";
import type { ResponseObject } from "./responses-store.ts";

export interface ResponseFormatOptions {
  readonly head: ReplyHead;
  /** The fields of the request that its response repeats. */
  readonly echo: object;
  readonly clock: Clock;
  /** Hears of a response that has ended, before its client does. */
  readonly finished: (response: ResponseObject) => void;
}

/** A response, and its stream of numbered events. */
export class ResponseFormat implements ReplyFormat {
  readonly #options: ResponseFormatOptions;
  readonly #output = new ResponseOutput();
  #events = 0;

  constructor(options: ResponseFormatOptions) {
    this.#options = options;
  }

  whole(replies: readonly Reply[]): object {
    const [reply] = replies as [Reply];
    for (const event of reply.events) this.#output.push(event);
    this.#output.end(statusOf(reply));
    return this.#finish(reply);
  }

  opening(): string {
    const response = this.#response("in_progress");
    const types = ["response.created", "response.in_progress"];
    return this.#frames(types.map((type) => ({ type, response })));
  }

  part(event: ReplyEvent): string {
    return this.#frames(this.#output.push(event));
  }

  ended(reply: Reply): string {
    return this.#frames(this.#output.end(statusOf(reply)));
  }

  closing(replies: readonly Reply[]): string {
    const [reply] = replies as [Reply];
    return this.#frames([{ type: `response.${statusOf(reply)}`, response: this.#finish(reply) }]);
  }

  /** Two events: clients throw the first, or read the other. */
  failed({ code, message, param }: DeltafoldError): string {
    // What a stream can still fail of is never the request's fault, and the object knows few codes.
    const error = { code: "server_error", message };
    return this.#frames([
      { type: "error", code, message, param },
      { type: "response.failed", response: this.#response("failed", { error }) },
    ]);
  }

  #finish(reply: Reply): ResponseObject {
    const status = statusOf(reply);
    const response = this.#response(status, {
      ...(status === "completed"
        ? { completed_at: this.#options.clock.unixSeconds() }
        : { incomplete_details: { reason: "max_output_tokens" } }),
      usage: usageOf(reply),
      ...extrasOf(reply),
    });
    this.#options.finished(response);
    return response;
  }

  #response(status: string, more: object = {}): ResponseObject {
    const { head, echo } = this.#options;
    return {
      ...echo,
      id: head.id,
      object: "response",
      created_at: head.created,
      model: head.model,
      status,
      error: null,
      incomplete_details: null,
      output: this.#output.items,
      ...more,
    };
  }

  #frames(events: readonly ResponseEvent[]): string {
    const numbered = events.map((event) => ({ ...event, sequence_number: this.#events++ }));
    return numbered.map((event) => frame(event, event.type)).join("");
  }
}

function statusOf({ finishReason }: Reply): "completed" | "incomplete" {
  return finishReason === "length" ? "incomplete" : "completed";
}

function usageOf({ promptTokens, cachedTokens, ids, reasoningTokens }: Reply): object {
  return {
    input_tokens: promptTokens,
    // Clients expect the second: what is billed for keeping prompts, which nobody is here.
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: 0 },
    output_tokens: ids.length,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + ids.length,
  };
}

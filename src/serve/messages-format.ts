import type { ReplyEvent } from "../engine.ts";
import type { DeltafoldError } from "../errors.ts";
import type { Reply } from "../stream.ts";
import { messagesErrorBody } from "./messages-error.ts";
import { extrasOf } from "./reply-extras.ts";
import { frame, type ReplyFormat, type ReplyHead, randomId } from "./reply-format.ts";

/** A block as it is written; the text of a call is the JSON of its input. */
type Block =
  | { readonly type: "text" | "thinking"; text: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; text: string };

export interface MessagesFormatOptions {
  readonly promptTokens: number;
  /** False: thinking blocks stay empty. */
  readonly showsThinking: boolean;
}

/** Anthropic's message, and the events of a streamed one. */
export class MessagesFormat implements ReplyFormat {
  readonly #id: string;
  readonly #model: string;
  readonly #options: MessagesFormatOptions;
  readonly #blocks: Block[] = [];

  constructor({ id, model }: ReplyHead, options: MessagesFormatOptions) {
    this.#id = id;
    this.#model = model;
    this.#options = options;
  }

  whole(replies: readonly Reply[]): object {
    const [reply] = replies as [Reply];
    for (const event of reply.events) this.part(event);
    const content = this.#blocks.flatMap((block) => {
      const input = inputOf(block);
      // A call that was cut could do anything but what was meant: it must not be carried out.
      return input === undefined ? [] : [blockObject(block, input)];
    });
    return {
      ...this.#message(content),
      ...this.#end(reply),
      ...extrasOf(reply),
      usage: usage(reply),
    };
  }

  opening(): string {
    // How much of the prompt was cached, is known at the end.
    const usage = { input_tokens: this.#options.promptTokens, output_tokens: 0 };
    const message = { ...this.#message([]), stop_reason: null, stop_sequence: null, usage };
    return eventFrame("message_start", { message });
  }

  part(event: ReplyEvent): string {
    if (event.type === "logprobs") return "";
    if (event.type === "toolArguments") return this.#add(event.text);
    if (event.type === "toolCall") {
      return this.#begin({ type: "tool_use", id: randomId("toolu_"), name: event.name, text: "" });
    }
    const type = event.type === "content" ? "text" : "thinking";
    const goesOn = this.#blocks.at(-1)?.type === type;
    const begun = goesOn ? "" : this.#begin({ type, text: "" });
    const shown = type === "text" || this.#options.showsThinking;
    return begun + (shown ? this.#add(event.text) : "");
  }

  ended(reply: Reply): string {
    const delta = this.#end(reply);
    return (
      this.#stop() + eventFrame("message_delta", { delta, usage: usage(reply), ...extrasOf(reply) })
    );
  }

  closing(): string {
    return eventFrame("message_stop", {});
  }

  failed(error: DeltafoldError): string {
    return frame(messagesErrorBody(error), "error");
  }

  #message(content: readonly object[]): object {
    const [id, model] = [this.#id, this.#model];
    return { id, type: "message", role: "assistant", model, content };
  }

  #begin(block: Block): string {
    const stop = this.#stop();
    this.#blocks.push(block);
    return stop + this.#event("content_block_start", { content_block: blockObject(block, {}) });
  }

  #add(text: string): string {
    const block = this.#blocks.at(-1)!;
    block.text += text;
    return this.#event("content_block_delta", { delta: deltaOf(block.type, text) });
  }

  /** Ends the latest block. */
  #stop(): string {
    const type = this.#blocks.at(-1)?.type;
    if (type === undefined) return "";
    // Clients wait for it, though nothing here is signed.
    const delta = { type: "signature_delta", signature: "" };
    const signature = type === "thinking" ? this.#event("content_block_delta", { delta }) : "";
    return signature + this.#event("content_block_stop", {});
  }

  /** An event of the latest block. */
  #event(type: string, fields: object): string {
    return eventFrame(type, { index: this.#blocks.length - 1, ...fields });
  }

  #end({ finishReason, stopSequence }: Reply): object {
    const called = this.#blocks.some(
      (block) => block.type === "tool_use" && inputOf(block) !== undefined,
    );
    const own = called ? "tool_use" : "end_turn";
    const cut = finishReason === "length" ? "max_tokens" : own;
    return {
      stop_reason: stopSequence === null ? cut : "stop_sequence",
      stop_sequence: stopSequence,
    };
  }
}

const eventFrame = (type: string, fields: object): string => frame({ type, ...fields }, type);

function blockObject(block: Block, input: unknown): object {
  const { type, text } = block;
  if (type === "tool_use") return { type, id: block.id, name: block.name, input };
  return type === "text" ? { type, text } : { type, thinking: text, signature: "" };
}

function deltaOf(type: Block["type"], text: string): object {
  if (type === "text") return { type: "text_delta", text };
  if (type === "thinking") return { type: "thinking_delta", thinking: text };
  return { type: "input_json_delta", partial_json: text };
}

/** A call's input, undefined where the call was cut; null for other blocks, which have none. */
function inputOf({ type, text }: Block): unknown {
  if (type !== "tool_use") return null;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Anthropic's usage, where what came from the cache isn't counted as input. */
function usage({ promptTokens, cachedTokens, ids, reasoningTokens }: Reply): object {
  return {
    input_tokens: promptTokens - cachedTokens,
    // Nothing is asked for the keeping.
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    output_tokens: ids.length,
    output_tokens_details: { thinking_tokens: reasoningTokens },
  };
}

/** The items of a response's output while they are written. */
import type { TokenLogprob } from "../stream.ts";
import { tokenLogprobs } from "./logprobs-format.ts";
import { randomId } from "./reply-format.ts";
import { isObjectText } from "./responses-input.ts";
import type {
  CallItem,
  ItemStatus,
  MessageItem,
  MessagePart,
  ReasoningItem,
  ResponseItem,
} from "./responses-items.ts";

export interface ItemWriter {
  readonly id: string;
  /** What the events of its text are named after. */
  readonly eventName: string;
  /** Where in the item its text is, as events say it. */
  readonly place: object;
  /** Adds to its text, and gives what an event tells beside it. */
  write(text: string, tokens: readonly TokenLogprob[]): object;
  /** The part of its content that the text is; null where it has none. */
  part(): object | null;
  /** Its text as the event tells that comes behind the last piece. */
  whole(): object;
  /** As it is before its text. */
  begun(): ResponseItem;
  /** @param status where nothing in the item says otherwise */
  item(status: ItemStatus): ResponseItem;
}

export class ReasoningWriter implements ItemWriter {
  readonly id: string = randomId("rs_");
  readonly eventName = "response.reasoning_text";
  readonly place: object = { content_index: 0 };
  #text = "";

  write(text: string): object {
    this.#text += text;
    return {};
  }

  part(): ReasoningItem["content"][number] {
    return { type: "reasoning_text", text: this.#text };
  }

  whole(): object {
    return { text: this.#text };
  }

  begun(): ReasoningItem {
    return { ...this.item("in_progress"), content: [] };
  }

  item(status: ItemStatus): ReasoningItem {
    return { type: "reasoning", id: this.id, status, summary: [], content: [this.part()] };
  }
}

export class MessageWriter implements ItemWriter {
  readonly id: string = randomId("msg_");
  readonly eventName = "response.output_text";
  readonly place: object = { content_index: 0 };
  readonly #logprobs: object[] = [];
  #text = "";

  write(text: string, tokens: readonly TokenLogprob[]): object {
    const logprobs = tokenLogprobs(tokens);
    this.#text += text;
    this.#logprobs.push(...logprobs);
    return { logprobs };
  }

  part(): MessagePart {
    const logprobs = [...this.#logprobs];
    return { type: "output_text", text: this.#text, annotations: [], logprobs };
  }

  whole(): object {
    return { text: this.#text, logprobs: this.#logprobs };
  }

  begun(): MessageItem {
    return { ...this.item("in_progress"), content: [] };
  }

  item(status: ItemStatus): MessageItem {
    return { type: "message", id: this.id, status, role: "assistant", content: [this.part()] };
  }
}

export class CallWriter implements ItemWriter {
  readonly id: string = randomId("fc_");
  readonly eventName = "response.function_call_arguments";
  readonly place: object = {};
  readonly #callId = randomId("call_");
  readonly #name: string;
  #arguments = "";

  constructor(name: string) {
    this.#name = name;
  }

  write(text: string): object {
    this.#arguments += text;
    return {};
  }

  part(): null {
    return null;
  }

  whole(): object {
    return { name: this.#name, arguments: this.#arguments };
  }

  begun(): CallItem {
    return this.#item("in_progress");
  }

  /** Whatever ended the reply: half a call is none, and a whole one is whole. */
  item(): CallItem {
    return this.#item(isObjectText(this.#arguments) ? "completed" : "incomplete");
  }

  #item(status: ItemStatus): CallItem {
    const [id, call_id, name] = [this.id, this.#callId, this.#name];
    return { type: "function_call", id, status, call_id, name, arguments: this.#arguments };
  }
}

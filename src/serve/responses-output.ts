import type { ReplyEvent } from "../engine.ts";
import type { TokenLogprob } from "../stream.ts";
import type { ItemStatus, ResponseItem } from "./responses-items.ts";
import { TextLogprobs } from "./responses-logprobs.ts";
import {
  CallWriter,
  type ItemWriter,
  MessageWriter,
  ReasoningWriter,
} from "./responses-writers.ts";

/** An event of a streamed response, before it has its number. */
export interface ResponseEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A response's output as it is written: each run of reasoning or text and each call is an item. */
export class ResponseOutput {
  readonly #done: ResponseItem[] = [];
  readonly #logprobs = new TextLogprobs();
  #open: ItemWriter | null = null;

  /** The items so far, the latest as if the reply had ended in it. */
  get items(): ResponseItem[] {
    return this.#open ? [...this.#done, this.#open.item("incomplete")] : [...this.#done];
  }

  /** @returns what a part of the reply changes */
  push(event: ReplyEvent): ResponseEvent[] {
    switch (event.type) {
      case "logprobs":
        this.#logprobs.add(event.tokens);
        return [];
      case "content": {
        const begun = this.#open instanceof MessageWriter ? [] : this.#begin(new MessageWriter());
        return [...begun, this.#write(event.text, this.#logprobs.take(event.text))];
      }
      case "reasoning": {
        this.#logprobs.skip();
        const open = this.#open instanceof ReasoningWriter;
        const begun = open ? [] : this.#begin(new ReasoningWriter());
        return [...begun, this.#write(event.text)];
      }
      case "toolCall":
        this.#logprobs.skip();
        return this.#begin(new CallWriter(event.name));
      case "toolArguments":
        this.#logprobs.skip();
        return [this.#write(event.text)];
    }
  }

  /**
   * Ends the latest item. A reply of nothing is an empty message, since it was somebody's turn.
   * @param status of an item that the reply ended in
   * @returns what that changes
   */
  end(status: ItemStatus): ResponseEvent[] {
    const empty = this.#open === null && this.#done.length === 0;
    return [...(empty ? this.#begin(new MessageWriter()) : []), ...this.#close(status)];
  }

  #write(delta: string, tokens: readonly TokenLogprob[] = []): ResponseEvent {
    const open = this.#open!;
    const beside = open.write(delta, tokens);
    return { type: `${open.eventName}.delta`, ...this.#place(open), delta, ...beside };
  }

  #begin(writer: ItemWriter): ResponseEvent[] {
    const closed = this.#close("completed");
    this.#open = writer;
    const item = writer.begun();
    const added = { type: "response.output_item.added", output_index: this.#done.length, item };
    return [...closed, added, ...this.#partEvent("added", writer)];
  }

  #close(status: ItemStatus): ResponseEvent[] {
    const open = this.#open;
    if (!open) return [];
    const item = open.item(status);
    const events = [
      { type: `${open.eventName}.done`, ...this.#place(open), ...open.whole() },
      ...this.#partEvent("done", open),
      { type: "response.output_item.done", output_index: this.#done.length, item },
    ];
    this.#done.push(item);
    this.#open = null;
    return events;
  }

  #partEvent(what: "added" | "done", writer: ItemWriter): ResponseEvent[] {
    const part = writer.part();
    return part ? [{ type: `response.content_part.${what}`, ...this.#place(writer), part }] : [];
  }

  #place(writer: ItemWriter): object {
    return { item_id: writer.id, output_index: this.#done.length, ...writer.place };
  }
}

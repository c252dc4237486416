import { functionClosing, functionOpening, parameterOpening } from "./call-tags.ts";
import { LabelReader } from "./label-reader.ts";
import { type Reading, TagExpecter } from "./tag-expecter.ts";

/**
 * Reads what makes a call of the text behind `<tool_call>`: `<function=NAME>`, and the opening of a
 * parameter or the closing of the function. Until then it may be text.
 */
export class CallHead {
  readonly #function = new TagExpecter([functionOpening]);
  readonly #name = new LabelReader();
  readonly #next = new TagExpecter([parameterOpening, functionClosing]);
  readonly #readers: readonly (TagExpecter | LabelReader)[] = [
    this.#function,
    this.#name,
    this.#next,
  ];
  #found = 0;

  push(text: string): Reading {
    let reading: Reading = { state: "found", after: text };
    while (reading.state === "found" && this.#found < this.#readers.length) {
      reading = this.#readers[this.#found]!.push(reading.after);
      if (reading.state === "found") this.#found++;
    }
    return reading;
  }

  /** The function's name, once the head is found. */
  get name(): string {
    return this.#name.label;
  }

  /** The tag that the head ends with, once it is found. */
  get tag(): string {
    return this.#next.tag;
  }

  /** Everything read, as written. */
  get read(): string {
    return this.#readers.map(({ read }) => read).join("");
  }
}

import type { Reading } from "./tag-expecter.ts";

/** Reads a function's or parameter's name up to `>`: on one line, and not empty. */
export class LabelReader {
  #read = "";
  #label = "";

  push(text: string): Reading {
    const end = text.search(/[<>\n]/);
    this.#read += end < 0 ? text : text.slice(0, end);
    if (end < 0) return { state: "more", after: "" };
    this.#label = this.#read.trim();
    if (text[end] !== ">" || this.#label === "") {
      return { state: "failed", after: text.slice(end) };
    }
    this.#read += ">";
    return { state: "found", after: text.slice(end + 1) };
  }

  /** The name, once it is found. */
  get label(): string {
    return this.#label;
  }

  /** Everything read, as written. */
  get read(): string {
    return this.#read;
  }
}

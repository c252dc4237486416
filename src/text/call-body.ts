import { ArgumentsWriter } from "./arguments-writer.ts";
import {
  callClosing,
  callOpening,
  functionClosing,
  parameterClosing,
  parameterOpening,
} from "./call-tags.ts";
import { LabelReader } from "./label-reader.ts";
import { StringMatcher } from "./string-matcher.ts";
import { TagExpecter } from "./tag-expecter.ts";
import type { ArgumentTypes } from "./tool-calls.ts";

/** Between parameters, all but these is skipped. */
const bodyTags: readonly string[] = [parameterOpening, functionClosing, callClosing, callOpening];
/**
 * What ends a parameter's value. The second and third are for models that forget the closing tag;
 * they must begin a line, because values may hold markup of their own.
 */
export const valueClosings: readonly string[] = [
  parameterClosing,
  `\n${parameterOpening}`,
  `\n${functionClosing}\n${callClosing}`,
];

/** What a piece of text led to in a call. */
export interface BodyReading {
  /** What it adds to the arguments' JSON text. */
  readonly written: string;
  readonly ended: boolean;
  /** Once ended: what was read and isn't the call's, as written. It comes before `after`. */
  readonly unread: string;
  readonly after: string;
}

/**
 * Reads a call from its head to its end, and writes its arguments as they come. Each character is
 * read once, and nothing depends on how the text was cut.
 */
export class CallBody {
  readonly #arguments: ArgumentsWriter;
  readonly #tags = new StringMatcher(bodyTags);
  readonly #value = new StringMatcher(valueClosings);
  readonly #closing = new TagExpecter([callClosing]);
  #key = new LabelReader();
  #state: "between" | "key" | "value" | "closing" | "ended" = "between";
  #written = "{";
  #unread = "";

  /** @param tag what the head ended with */
  constructor(types: ArgumentTypes, tag: string) {
    this.#arguments = new ArgumentsWriter(types);
    this.#follow(tag);
  }

  /** Whether only `</tool_call>` is missing. */
  get functionClosed(): boolean {
    return this.#state === "closing";
  }

  push(text: string): BodyReading {
    let after = text;
    while (after !== "" && this.#state !== "ended") after = this.#step(after);
    const written = this.#written;
    this.#written = "";
    return { written, ended: this.#state === "ended", unread: this.#unread, after };
  }

  #step(text: string): string {
    if (this.#state === "key") return this.#readKey(text);
    if (this.#state === "value") return this.#readValue(text);
    if (this.#state === "closing") return this.#readClosing(text);
    const { matched, after } = this.#tags.push(text);
    if (matched !== null) this.#follow(matched);
    return after;
  }

  #readKey(text: string): string {
    const { state, after } = this.#key.push(text);
    if (state === "failed") this.#state = "between";
    if (state === "found") {
      this.#state = "value";
      this.#written += this.#arguments.begin(this.#key.label);
    }
    return after;
  }

  #readValue(text: string): string {
    const { before, matched, after } = this.#value.push(text);
    this.#written += this.#arguments.push(before);
    if (matched === null) return after;
    this.#written += this.#arguments.end();
    if (matched === parameterClosing) this.#state = "between";
    else this.#follow(matched);
    return after;
  }

  #readClosing(text: string): string {
    const { state, after } = this.#closing.push(text);
    if (state === "failed") this.#unread = this.#closing.read;
    if (state !== "more") this.#state = "ended";
    return after;
  }

  /** Goes on behind a tag, or behind the tags that ended a value. */
  #follow(tag: string): void {
    if (tag.endsWith(parameterOpening)) {
      this.#state = "key";
      this.#key = new LabelReader();
      return;
    }
    this.#written += "}";
    this.#state = tag === functionClosing ? "closing" : "ended";
    if (tag === callOpening) this.#unread = tag;
  }
}

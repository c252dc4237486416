import { StringMatcher } from "./string-matcher.ts";
import { TagExpecter } from "./tag-expecter.ts";
import type { WrittenParameter } from "./tool-calls.ts";

export const callOpening = "<tool_call>";
const callClosing = "</tool_call>";
const functionOpening = "<function=";
const functionClosing = "</function>";
const parameterOpening = "<parameter=";
/**
 * What ends a parameter's value. The second and third are for models that forget the closing tag;
 * they must begin a line, because values may hold markup of their own.
 */
const valueClosings: readonly string[] = [
  "</parameter>",
  `\n${parameterOpening}`,
  `\n${functionClosing}\n${callClosing}`,
];

export type CallOutcome =
  | { readonly kind: "more" }
  | {
      readonly kind: "call";
      readonly name: string;
      readonly parameters: readonly WrittenParameter[];
      readonly rest: string;
    }
  /** Not a call: `raw` is its text as written, up to where it went wrong, and `rest` the rest. */
  | { readonly kind: "broken"; readonly raw: string; readonly rest: string };

type State = "function" | "name" | "body" | "key" | "value" | "close" | "done" | "broken";

/**
 * Reads one call, `<function=…>` to `</tool_call>`, after its opening tag. Each character is read
 * once, and where a call turns out malformed doesn't depend on how the text was cut.
 */
export class CallReader {
  #state: State = "function";
  #expecter = new TagExpecter([functionOpening]);
  readonly #value = new StringMatcher(valueClosings);
  #raw = callOpening;
  #name = "";
  #key = "";
  #text = "";
  readonly #parameters: WrittenParameter[] = [];

  push(text: string): CallOutcome {
    let rest = text;
    while (rest !== "" && this.#state !== "done" && this.#state !== "broken") {
      rest = this.#step(rest);
    }
    if (this.#state === "done") return this.#call(rest);
    if (this.#state === "broken") return { kind: "broken", raw: this.#raw, rest };
    return { kind: "more" };
  }

  /** The reply ended: a call whose function is closed is whole, any other is text. */
  end(): CallOutcome {
    if (this.#state === "close") return this.#call("");
    const pending = this.#state === "value" ? this.#value.flush() : this.#expecter.pending;
    return { kind: "broken", raw: this.#raw + pending, rest: "" };
  }

  #call(rest: string): CallOutcome {
    return { kind: "call", name: this.#name, parameters: this.#parameters, rest };
  }

  #step(text: string): string {
    if (this.#state === "value") return this.#readValue(text);
    if (this.#state === "name" || this.#state === "key") return this.#readLabel(text);
    return this.#readTag(text);
  }

  #readTag(text: string): string {
    const { state, tag, consumed, rest } = this.#expecter.push(text);
    if (state === "more") return "";
    this.#raw += consumed;
    this.#expecter = new TagExpecter([]);
    if (state === "failed") this.#state = "broken";
    else if (tag === functionOpening) this.#state = "name";
    else if (tag === parameterOpening) this.#beginKey();
    else if (tag === functionClosing) this.#expect("close", [callClosing]);
    else this.#state = "done";
    return rest;
  }

  #expect(state: State, tags: readonly string[]): void {
    this.#state = state;
    this.#expecter = new TagExpecter(tags);
  }

  #beginKey(): void {
    this.#state = "key";
    this.#key = "";
  }

  /** A function's or parameter's name: up to `>`, on one line, not empty. */
  #readLabel(text: string): string {
    const end = text.search(/[<>\n]/);
    const part = end < 0 ? text : text.slice(0, end);
    this.#raw += part;
    if (this.#state === "name") this.#name += part;
    else this.#key += part;
    if (end < 0) return "";
    const label = (this.#state === "name" ? this.#name : this.#key).trim();
    if (text[end] !== ">" || label === "") {
      this.#state = "broken";
      return text.slice(end);
    }
    this.#raw += ">";
    if (this.#state === "name") {
      this.#name = label;
      this.#expect("body", [parameterOpening, functionClosing]);
    } else {
      this.#key = label;
      this.#text = "";
      this.#state = "value";
    }
    return text.slice(end + 1);
  }

  #readValue(text: string): string {
    const { before, matched, after } = this.#value.push(text);
    this.#text += before;
    this.#raw += before + (matched ?? "");
    if (matched === null) return "";
    this.#parameters.push([this.#key, withoutOuterNewlines(this.#text)]);
    if (matched.endsWith(callClosing)) this.#state = "done";
    else if (matched.endsWith(parameterOpening)) this.#beginKey();
    else this.#expect("body", [parameterOpening, functionClosing]);
    return after;
  }
}

/** The template puts one newline at each side of a value; the value's own stay. */
function withoutOuterNewlines(text: string): string {
  const start = text.startsWith("\n") ? 1 : 0;
  const end = text.endsWith("\n") ? text.length - 1 : text.length;
  return text.slice(start, Math.max(start, end));
}

import { TextRun } from "./text-run.ts";
import { type ArgumentTypes, argumentJson, isAlwaysString } from "./tool-calls.ts";

const isHighSurrogate = (unit: string): boolean => unit >= "\ud800" && unit <= "\udbff";

/** A parameter's value as it arrives, without the newline that markup puts at each side of it. */
class ValueText {
  #begun = false;
  // A newline may be the markup's, and half a character must not go alone.
  readonly #run = new TextRun((unit) => unit === "\n" || isHighSurrogate(unit), false);

  push(text: string): string {
    if (text === "") return "";
    const own = !this.#begun && text.startsWith("\n") ? text.slice(1) : text;
    this.#begun = true;
    return this.#run.push(own);
  }

  end(): string {
    const held = this.#run.takeHeld();
    return held.endsWith("\n") ? held.slice(0, -1) : held;
  }
}

/**
 * Writes a call's arguments between the braces of a JSON object. A value that can only be a string
 * is written as it arrives, any other once it has ended. Of a name written twice the first counts,
 * because its value has been sent when the second comes.
 */
export class ArgumentsWriter {
  readonly #types: ArgumentTypes;
  readonly #keys = new Set<string>();
  #value = new ValueText();
  /** What becomes of the value. */
  #way: "streamed" | "typed" | "skipped" = "skipped";
  /** The types that a typed value may have, and its text so far. */
  #allowed: ReadonlySet<string> = new Set();
  #text = "";

  constructor(types: ArgumentTypes) {
    this.#types = types;
  }

  /** A parameter begins: what that writes. */
  begin(key: string): string {
    this.#value = new ValueText();
    this.#way = "skipped";
    if (this.#keys.has(key)) return "";
    const comma = this.#keys.size > 0 ? "," : "";
    this.#keys.add(key);
    this.#allowed = this.#types(key);
    this.#text = "";
    this.#way = isAlwaysString(this.#allowed) ? "streamed" : "typed";
    return `${comma}${JSON.stringify(key)}:${this.#way === "streamed" ? '"' : ""}`;
  }

  /** More of its value. */
  push(text: string): string {
    return this.#write(this.#value.push(text));
  }

  /** Its value has ended. */
  end(): string {
    const last = this.#write(this.#value.end());
    if (this.#way === "streamed") return `${last}"`;
    return this.#way === "typed" ? argumentJson(this.#text, this.#allowed) : "";
  }

  #write(text: string): string {
    if (this.#way === "streamed") return JSON.stringify(text).slice(1, -1);
    if (this.#way === "typed") this.#text += text;
    return "";
  }
}

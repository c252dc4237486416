import { type CallOutcome, CallReader, callOpening } from "./call-reader.ts";
import { StringMatcher } from "./string-matcher.ts";
import { isSpace, TagExpecter } from "./tag-expecter.ts";
import { TextRun } from "./text-run.ts";
import { argumentsJson, type ToolSpec } from "./tool-calls.ts";

const thinkOpening = "<think>";
const thinkClosing = "</think>";

export type ReplyEvent =
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "content"; readonly text: string }
  /** `arguments` is the text of a JSON object. */
  | { readonly type: "toolCall"; readonly name: string; readonly arguments: string };

export interface ReplyParserOptions {
  /** Whether the prompt ended in an open think block (`endsInOpenThink`). */
  readonly reasoningOpen: boolean;
  /** The tools offered; with null, tool markup is plain text. */
  readonly tools: readonly ToolSpec[] | null;
}

/**
 * Splits a reply, as it arrives, into reasoning, content and tool calls. The reasoning, the content
 * and the calls, each joined, are the same wherever the reply is cut.
 *
 * A think block opens only at the reply's start (or in the prompt). Newlines at its edges and
 * before the content are dropped. White space before a call, between calls and at the end after
 * one is not content. A call ends the reasoning it stands in; one that is malformed or unfinished
 * is text of where it stands, as written. A call to a tool that wasn't offered is a call.
 */
export class ReplyParser {
  readonly #tools: readonly ToolSpec[] | null;
  #mode: "start" | "text" | "call";
  /** What text is; while a call is read, what its text would be if it turned out to be none. */
  #kind: "reasoning" | "content";
  readonly #start = new TagExpecter([thinkOpening]);
  readonly #reasoning = new TextRun((unit) => unit === "\n" || unit === "\r", true);
  #content = new TextRun(isSpace, false);
  #matcher: StringMatcher;
  #call = new CallReader();
  #afterCall = false;
  #events: ReplyEvent[] = [];

  constructor(options: ReplyParserOptions) {
    this.#tools = options.tools;
    this.#mode = options.reasoningOpen ? "text" : "start";
    this.#kind = options.reasoningOpen ? "reasoning" : "content";
    this.#matcher = this.#matcherFor(this.#kind);
  }

  /** The events that `text` settles. */
  push(text: string): ReplyEvent[] {
    let rest = text;
    while (rest !== "") rest = this.#step(rest);
    return this.#takeEvents();
  }

  /** The reply ended: the events of what was held. */
  end(): ReplyEvent[] {
    if (this.#mode === "start") this.#write(this.#start.pending);
    else if (this.#mode === "call") this.#settle(this.#call.end());
    else this.#write(this.#matcher.flush());
    // Newlines held for reasoning were its edge; white space held for content was its end.
    if (!this.#afterCall) this.#emit("content", this.#content.takeHeld());
    return this.#takeEvents();
  }

  #step(text: string): string {
    if (this.#mode === "start") return this.#readStart(text);
    if (this.#mode === "call") return this.#settle(this.#call.push(text));
    const { before, matched, after } = this.#matcher.push(text);
    this.#write(before);
    if (matched === thinkClosing) this.#openContent(true);
    else if (matched === callOpening) {
      this.#mode = "call";
      this.#call = new CallReader();
    }
    return after;
  }

  #readStart(text: string): string {
    const { state, consumed, rest } = this.#start.push(text);
    if (state === "more") return "";
    this.#mode = "text";
    if (state === "failed") return consumed + rest;
    this.#kind = "reasoning";
    this.#matcher = this.#matcherFor("reasoning");
    return rest;
  }

  #openContent(trimsStart: boolean): void {
    this.#mode = "text";
    this.#kind = "content";
    this.#content = new TextRun(isSpace, trimsStart);
    this.#matcher = this.#matcherFor("content");
  }

  #settle(outcome: CallOutcome): string {
    if (outcome.kind === "more") return "";
    if (outcome.kind === "broken") {
      this.#mode = "text";
      this.#write(outcome.raw);
      return outcome.rest;
    }
    this.#openContent(false);
    this.#afterCall = true;
    const written = argumentsJson(this.#tools ?? [], outcome.name, outcome.parameters);
    this.#events.push({ type: "toolCall", name: outcome.name, arguments: written });
    return outcome.rest;
  }

  #matcherFor(kind: "reasoning" | "content"): StringMatcher {
    const calls = this.#tools === null ? [] : [callOpening];
    return new StringMatcher(kind === "reasoning" ? [thinkClosing, ...calls] : calls);
  }

  #write(text: string): void {
    const run = this.#kind === "reasoning" ? this.#reasoning : this.#content;
    this.#emit(this.#kind, run.push(text));
  }

  #emit(type: "reasoning" | "content", text: string): void {
    if (text === "") return;
    if (type === "content") this.#afterCall = false;
    const last = this.#events.at(-1);
    if (last?.type === type) {
      this.#events[this.#events.length - 1] = { type, text: last.text + text };
    } else this.#events.push({ type, text });
  }

  #takeEvents(): ReplyEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}

/** A whole reply, taken apart. */
export interface ParsedReply {
  readonly reasoning: string;
  readonly content: string;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
}

/** What the events of one reply, in order, amount to. */
export function joinEvents(events: readonly ReplyEvent[]): ParsedReply {
  let reasoning = "";
  let content = "";
  const toolCalls: { name: string; arguments: string }[] = [];
  for (const event of events) {
    if (event.type === "reasoning") reasoning += event.text;
    else if (event.type === "content") content += event.text;
    else toolCalls.push({ name: event.name, arguments: event.arguments });
  }
  return { reasoning, content, toolCalls };
}

/** Parses a whole reply with the streaming parser. */
export function parseReply(text: string, options: ReplyParserOptions): ParsedReply {
  const parser = new ReplyParser(options);
  return joinEvents([...parser.push(text), ...parser.end()]);
}

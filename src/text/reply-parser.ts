import { CallBody } from "./call-body.ts";
import { CallHead } from "./call-head.ts";
import { callOpening } from "./call-tags.ts";
import { StringMatcher } from "./string-matcher.ts";
import { isSpace, TagExpecter } from "./tag-expecter.ts";
import { TextRun } from "./text-run.ts";
import { argumentTypes, type ToolSpec } from "./tool-calls.ts";

const thinkOpening = "<think>";
const thinkClosing = "</think>";

export type ReplyPart =
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "content"; readonly text: string }
  /** A call begins; its arguments follow. */
  | { readonly type: "toolCall"; readonly name: string }
  /** A piece of the latest call's arguments: joined, a JSON object, if the call has ended. */
  | { readonly type: "toolArguments"; readonly text: string };

export interface ReplyParserOptions {
  /** Whether the prompt ended in an open think block (`endsInOpenThink`). */
  readonly reasoningOpen: boolean;
  /** The tools offered; with null, tool markup is plain text. */
  readonly tools: readonly ToolSpec[] | null;
  /** The reply ends behind its first call. */
  readonly oneCall: boolean;
}

/**
 * Splits a reply, as it arrives, into reasoning, content and tool calls. The reasoning, the content
 * and the calls, each joined, are the same wherever the reply is cut.
 *
 * A think block opens only at the reply's start (or in the prompt). Newlines at its edges and
 * before the content are dropped. White space before a call, between calls and at the end after
 * one is not content.
 *
 * `<tool_call>`, `<function=NAME>` and then `<parameter=` or `</function>` make a call, to a tool
 * that was offered or not. It ends the reasoning it stands in. What only begins so is text of where
 * it stands, as written. Once it is a call it stays one, whatever follows:
 * - Its arguments come as they are written: values that can only be strings piece by piece, others
 *   whole. Of a name written twice the first counts.
 * - What is no tag between parameters, and a parameter whose name is broken, is skipped up to the
 *   next tag.
 * - `</function>` closes the arguments. Then `</tool_call>` ends the call, and so does anything
 *   else, which is read as text. Where `</function>` is missing, `</tool_call>` or another
 *   `<tool_call>` closes the arguments and ends the call.
 * - Where the reply ends before, the arguments stay unclosed: nobody can take half a call for one.
 */
export class ReplyParser {
  readonly #tools: readonly ToolSpec[] | null;
  readonly #oneCall: boolean;
  /** What is being read: the reply's start, a call's head, a call, or, with none of them, text. */
  #start: TagExpecter | null;
  #head: CallHead | null = null;
  #body: CallBody | null = null;
  #matcher: StringMatcher;
  /** What text is, also that of a head that turns out to be none. */
  #kind: "reasoning" | "content";
  readonly #reasoning = new TextRun((unit) => unit === "\n" || unit === "\r", true);
  #content = new TextRun(isSpace, false);
  #callsEnded = 0;
  #afterCall = false;
  #events: ReplyPart[] = [];

  constructor(options: ReplyParserOptions) {
    this.#tools = options.tools;
    this.#oneCall = options.oneCall;
    this.#start = options.reasoningOpen ? null : new TagExpecter([thinkOpening]);
    this.#kind = options.reasoningOpen ? "reasoning" : "content";
    this.#matcher = this.#matcherFor(this.#kind);
  }

  /** Whether what comes next belongs to a think block, as far as it is known. */
  get inReasoning(): boolean {
    return this.#kind === "reasoning";
  }

  /** Calls whose arguments are closed and to which nothing can be added. */
  get callsEnded(): number {
    return this.#callsEnded;
  }

  /** Whether what comes next is not read, because the only call has ended. */
  get ended(): boolean {
    return this.#oneCall && this.#callsEnded > 0;
  }

  /** The events that `text` settles. */
  push(text: string): ReplyPart[] {
    this.#read(text);
    return this.#takeEvents();
  }

  /** The reply ended: the events of what was held. */
  end(): ReplyPart[] {
    if (this.#start) this.#write(this.#start.read);
    if (this.#head) this.#giveUp(this.#head);
    if (this.#body?.functionClosed) this.#callsEnded++;
    this.#write(this.#matcher.flush());
    // Newlines held for reasoning were its edge; white space held for content was its end.
    if (!this.#afterCall) this.#emit("content", this.#content.takeHeld());
    return this.#takeEvents();
  }

  #read(text: string): void {
    let rest = text;
    while (rest !== "" && !this.ended) rest = this.#step(rest);
  }

  #step(text: string): string {
    if (this.#start) return this.#readStart(this.#start, text);
    if (this.#head) return this.#readHead(this.#head, text);
    if (this.#body) return this.#readBody(this.#body, text);
    const { before, matched, after } = this.#matcher.push(text);
    this.#write(before);
    if (matched === thinkClosing) this.#openContent(true);
    else if (matched === callOpening) this.#head = new CallHead();
    return after;
  }

  #readStart(start: TagExpecter, text: string): string {
    const { state, after } = start.push(text);
    if (state === "more") return after;
    this.#start = null;
    if (state === "failed") this.#read(start.read);
    else {
      this.#kind = "reasoning";
      this.#matcher = this.#matcherFor("reasoning");
    }
    return after;
  }

  #readHead(head: CallHead, text: string): string {
    const { state, after } = head.push(text);
    if (state === "failed") this.#giveUp(head);
    if (state !== "found") return after;
    this.#head = null;
    this.#openContent(false);
    this.#afterCall = true;
    this.#events.push({ type: "toolCall", name: head.name });
    this.#body = new CallBody(argumentTypes(this.#tools ?? [], head.name), head.tag);
    return this.#readBody(this.#body, after);
  }

  /** What looked like a call is text. It holds no other tag; one may begin at its end. */
  #giveUp(head: CallHead): void {
    this.#head = null;
    this.#write(callOpening);
    this.#read(head.read);
  }

  #readBody(body: CallBody, text: string): string {
    const { written, ended, unread, after } = body.push(text);
    this.#emit("toolArguments", written);
    if (ended) {
      this.#body = null;
      this.#callsEnded++;
      this.#read(unread);
    }
    return after;
  }

  #openContent(trimsStart: boolean): void {
    this.#kind = "content";
    this.#content = new TextRun(isSpace, trimsStart);
    this.#matcher = this.#matcherFor("content");
  }

  #matcherFor(kind: "reasoning" | "content"): StringMatcher {
    const calls = this.#tools === null ? [] : [callOpening];
    return new StringMatcher(kind === "reasoning" ? [thinkClosing, ...calls] : calls);
  }

  #write(text: string): void {
    const run = this.#kind === "reasoning" ? this.#reasoning : this.#content;
    this.#emit(this.#kind, run.push(text));
  }

  #emit(type: "reasoning" | "content" | "toolArguments", text: string): void {
    if (text === "") return;
    if (type === "content") this.#afterCall = false;
    const last = this.#events.at(-1);
    if (last?.type === type) {
      this.#events[this.#events.length - 1] = { type, text: last.text + text };
    } else this.#events.push({ type, text });
  }

  #takeEvents(): ReplyPart[] {
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
export function joinParts(events: readonly ReplyPart[]): ParsedReply {
  let reasoning = "";
  let content = "";
  const toolCalls: { name: string; arguments: string }[] = [];
  for (const event of events) {
    if (event.type === "reasoning") reasoning += event.text;
    else if (event.type === "content") content += event.text;
    else if (event.type === "toolCall") toolCalls.push({ name: event.name, arguments: "" });
    else toolCalls.at(-1)!.arguments += event.text;
  }
  return { reasoning, content, toolCalls };
}

/** Parses a whole reply with the streaming parser. */
export function parseReply(text: string, options: ReplyParserOptions): ParsedReply {
  const parser = new ReplyParser(options);
  return joinParts([...parser.push(text), ...parser.end()]);
}

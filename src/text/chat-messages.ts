import { InputError } from "../errors.ts";
import { isRecord, nestsWithin, shown } from "../json.ts";
import { jsonDepthMax } from "../limits.ts";
import { parseNumbersExactly } from "./python-print.ts";

/** One part of a message's content; only text parts can be rendered. */
export interface ContentPart {
  readonly type: string;
  readonly text?: string;
}

/** A tool call that an assistant message reports, in OpenAI's shape. */
export interface MessageToolCall {
  readonly id?: string;
  readonly type?: string;
  readonly function: {
    readonly name: string;
    /** A JSON object, as text or parsed. */
    readonly arguments?: string | Readonly<Record<string, unknown>>;
  };
}

/** A message as requests bring it. */
export interface ChatMessage {
  /** system, developer, user, assistant or tool. */
  readonly role: string;
  readonly content?: string | readonly ContentPart[] | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly MessageToolCall[] | null;
  readonly tool_call_id?: string;
  readonly name?: string;
}

/** A message as templates read it. */
export interface TemplateMessage {
  readonly role: string;
  readonly content: string;
  readonly [field: string]: unknown;
}

const roles: ReadonlySet<string> = new Set(["system", "user", "assistant", "tool"]);

/** Refuses what stands at `place`, such as `messages[2].content`. */
function fail(place: string, rule: string): never {
  throw new InputError(`${place} ${rule}.`, place);
}

/** Only a user must say something: an assistant that calls tools may have no content. */
function contentText(content: ChatMessage["content"], role: string, place: string): string {
  if (content === undefined || content === null) {
    if (role === "user") fail(place, "is missing: it must be a string or a list of parts");
    return "";
  }
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) fail(place, "must be a string, a list of parts or null");
  return content.map((part, index) => partText(part, `${place}[${index}]`)).join("");
}

function partText(part: unknown, place: string): string {
  const { type, text }: { type?: unknown; text?: unknown } = isRecord(part) ? part : {};
  if (type !== "text") {
    const found = isRecord(part) ? `one of type ${shown(type)}` : shown(part);
    fail(place, `must be a part of type "text", which is all that this model reads, not ${found}`);
  }
  if (typeof text !== "string") fail(`${place}.text`, `must be a string, not ${shown(text)}`);
  return text;
}

/** Templates walk arguments as a mapping, and requests write them as JSON text. */
function argumentMapping(written: unknown, place: string): Record<string, unknown> {
  const value = parsedWithin(written ?? {}, jsonDepthMax);
  if (isRecord(value)) return value;
  return fail(place, `must be a JSON object or its text, at most ${jsonDepthMax} levels deep`);
}

/** The value of JSON text, or of what could be written as such; undefined where it is neither. */
function parsedWithin(written: unknown, levels: number): unknown {
  try {
    const text = typeof written === "string" ? written : JSON.stringify(written);
    return nestsWithin(text, levels) ? parseNumbersExactly(text) : undefined;
  } catch {
    return undefined;
  }
}

function toolCall(call: unknown, place: string): Record<string, unknown> {
  const { function: fn, id }: { function?: unknown; id?: unknown } = isRecord(call) ? call : {};
  if (!isRecord(fn)) fail(place, "must be an object with a function");
  const { name, arguments: written }: { name?: unknown; arguments?: unknown } = fn;
  if (typeof name !== "string") {
    fail(`${place}.function.name`, `must be a string, not ${shown(name)}`);
  }
  const called = { name, arguments: argumentMapping(written, `${place}.function.arguments`) };
  return { ...(typeof id === "string" && { id }), type: "function", function: called };
}

function toolCalls(calls: unknown, place: string): Record<string, unknown>[] {
  if (!Array.isArray(calls)) fail(place, "must be a list");
  return calls.map((call, index) => toolCall(call, `${place}[${index}]`));
}

function normalised(message: ChatMessage, place: string): TemplateMessage {
  if (!isRecord(message)) fail(place, "must be an object");
  const role = message.role === "developer" ? "system" : message.role;
  if (!roles.has(role)) {
    const known = "must be system, developer, user, assistant or tool";
    fail(`${place}.role`, `${known}, not ${shown(role)}`);
  }
  const { reasoning_content: reasoning, tool_calls: calls, tool_call_id: callId, name } = message;
  if (reasoning && typeof reasoning !== "string") {
    fail(`${place}.reasoning_content`, "must be a string");
  }
  const called = calls ? toolCalls(calls, `${place}.tool_calls`) : [];
  return {
    role,
    content: contentText(message.content, role, `${place}.content`),
    ...(typeof reasoning === "string" && { reasoning_content: reasoning }),
    ...(called.length > 0 && { tool_calls: called }),
    ...(typeof callId === "string" && { tool_call_id: callId }),
    ...(typeof name === "string" && { name }),
  };
}

/**
 * Messages in the one form that templates expect: text contents, parsed arguments, `developer`
 * read as `system`, and the leading system messages merged with a blank line between.
 * @throws InputError naming the place at fault, such as `messages[2].content`.
 */
export function normaliseMessages(messages: readonly ChatMessage[]): TemplateMessage[] {
  if (messages.length === 0) fail("messages", "must not be empty");
  const all = messages.map((message, index) => normalised(message, `messages[${index}]`));
  const first = all.findIndex((message) => message.role !== "system");
  const leading = first < 0 ? all.length : first;
  if (leading < 2) return all;
  const texts = all.slice(0, leading).map((message) => message.content);
  const content = texts.filter((text) => text !== "").join("\n\n");
  return [{ role: "system", content }, ...all.slice(leading)];
}

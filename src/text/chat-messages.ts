import { InputError } from "../errors.ts";
import { jsonDepthMax } from "../limits.ts";
import { isRecord } from "./json.ts";

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

function fail(message: string): never {
  throw new InputError(message, "messages");
}

function contentText(content: ChatMessage["content"]): string {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) fail("content must be a string, a list of parts or null.");
  return content.map(partText).join("");
}

function partText(part: unknown): string {
  const { type, text }: { type?: unknown; text?: unknown } = isRecord(part) ? part : {};
  if (type !== "text") fail(`This model reads text only: a content part of type ${type} can't be.`);
  if (typeof text !== "string") fail("A text part must have a text.");
  return text;
}

function nestsWithin(value: unknown, left: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return left > 0 && Object.values(value).every((inner) => nestsWithin(inner, left - 1));
}

/** Templates walk arguments as a mapping, and requests write them as JSON text. */
function argumentMapping(name: string, written: unknown): Record<string, unknown> {
  let value = written ?? {};
  if (typeof value === "string") {
    try {
      value = JSON.parse(value);
    } catch {
      fail(`The arguments of the tool call ${name} are not JSON.`);
    }
  }
  if (!isRecord(value)) fail(`The arguments of the tool call ${name} are not a JSON object.`);
  if (!nestsWithin(value, jsonDepthMax)) fail(`The arguments of ${name} are nested too deeply.`);
  return value;
}

function toolCall(call: unknown): Record<string, unknown> {
  const { function: fn, id }: { function?: unknown; id?: unknown } = isRecord(call) ? call : {};
  const { name, arguments: written }: { name?: unknown; arguments?: unknown } = isRecord(fn)
    ? fn
    : {};
  if (typeof name !== "string") fail("A tool call must have a function with a name.");
  const called = { name, arguments: argumentMapping(name, written) };
  return { ...(typeof id === "string" && { id }), type: "function", function: called };
}

function normalised(message: ChatMessage): TemplateMessage {
  if (!isRecord(message)) fail("Each message must be an object.");
  const role = message.role === "developer" ? "system" : message.role;
  if (!roles.has(role)) fail(`Unknown role: ${role}`);
  const { reasoning_content: reasoning, tool_calls: calls, tool_call_id: callId, name } = message;
  if (calls && !Array.isArray(calls)) fail("tool_calls must be a list.");
  if (reasoning && typeof reasoning !== "string") fail("reasoning_content must be a string.");
  return {
    role,
    content: contentText(message.content),
    ...(typeof reasoning === "string" && { reasoning_content: reasoning }),
    ...(calls && calls.length > 0 && { tool_calls: calls.map(toolCall) }),
    ...(typeof callId === "string" && { tool_call_id: callId }),
    ...(typeof name === "string" && { name }),
  };
}

/**
 * Messages in the one form that templates expect: text contents, parsed arguments, `developer`
 * read as `system`, and the leading system messages merged with a blank line between.
 * @throws InputError (param `messages`).
 */
export function normaliseMessages(messages: readonly ChatMessage[]): TemplateMessage[] {
  if (messages.length === 0) fail("messages must not be empty.");
  const all = messages.map(normalised);
  const first = all.findIndex((message) => message.role !== "system");
  const leading = first < 0 ? all.length : first;
  if (leading < 2) return all;
  const texts = all.slice(0, leading).map((message) => message.content);
  const content = texts.filter((text) => text !== "").join("\n\n");
  return [{ role: "system", content }, ...all.slice(leading)];
}

import { InputError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import type { ChatMessage } from "./chat-messages.ts";
import type { ParsedReply } from "./reply-parser.ts";

/** A conversation, and how a request of its kind becomes a prompt. */
export interface PromptSource {
  readonly messages: readonly ChatMessage[];
  /**
   * The text of a prompt for the next reply, with the request's own tools and variables.
   * @throws InputError where the template refuses the messages
   */
  render(messages: readonly ChatMessage[]): string;
  encode(text: string): TokenId[];
}

/** A place in a prompt from where later prompts are likely to go on. */
export interface PromptMark {
  /** The prompt's tokens before it: from 1 to all of them. */
  readonly rows: number;
  /**
   * history: the next turns repeat what is before it. rewind: the latest user message's text is
   * after it, and may be edited. shared: other conversations begin like this one up to it.
   */
  readonly kind: "history" | "rewind" | "shared";
}

type Reply = Pick<ParsedReply, "content" | "toolCalls">;

/** Fewer rows than this, such as a template's first words, aren't worth a mark as a shared start. */
const sharedRowsMin = 16;

/**
 * Stand for texts that aren't known yet. They begin with unlike characters, because what begins a
 * text may become one token with what is before it: that token must not be common to both.
 */
const probeTexts = ["a", "\nb"] as const;
const probeCalls = [{ name: "probe", arguments: "{}" }] as const;

/**
 * The places in a prompt at which states are worth keeping, ascending, no two at the same row. The
 * prompts that may follow are rendered and compared, because a template may write a past turn
 * otherwise than a latest one. Where it refuses them, the mark is left out.
 * @param source the conversation that the prompt was made of
 */
export function promptMarks(source: PromptSource, promptIds: readonly TokenId[]): PromptMark[] {
  const { messages } = source;
  const kinds = new Map<number, PromptMark["kind"]>();
  // Of two marks at one row, the one found first stays: what is of use to more prompts, for longer.
  const mark = (
    kind: PromptMark["kind"],
    later: (probe: string) => readonly ChatMessage[],
    rowsMin = 1,
  ) => {
    const rows = commonIds(source, later, promptIds)?.length ?? 0;
    if (rows >= rowsMin && !kinds.has(rows)) kinds.set(rows, kind);
  };
  mark("history", (probe) => [...messages, ...turn({ content: probe, toolCalls: [] }, probe)]);
  // Templates may keep reasoning from call to call, and drop it once the user speaks again: the
  // next turns then go on from two places.
  if (messages.at(-1)?.role === "tool") {
    const reply = { content: "", toolCalls: probeCalls };
    mark("history", (probe) => [...messages, ...turn(reply, probe)]);
  }
  const first = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
  const system = first < 0 ? messages : messages.slice(0, first);
  mark("shared", (probe) => [...system, user(probe)], sharedRowsMin);
  const latest = messages.findLastIndex(({ role }) => role === "user");
  if (latest >= 0) {
    const before = messages.slice(0, latest);
    mark("rewind", (probe) => [...before, { ...messages[latest]!, content: probe }]);
  }
  return Array.from(kinds, ([rows, kind]) => ({ rows, kind })).sort((a, b) => a.rows - b.rows);
}

/**
 * The tokens with which every prompt after a reply begins that repeats it without its reasoning:
 * the conversation, the reply, and the template's words before the user's text or the calls'
 * results. Null where the template refuses the conversation.
 */
export function nextTurnIds(source: PromptSource, reply: Reply): TokenId[] | null {
  return commonIds(source, (probe) => [...source.messages, ...turn(reply, probe)]);
}

/** What the prompts made with each probe have in common, with each other and with `ids`. */
function commonIds(
  source: PromptSource,
  later: (probe: string) => readonly ChatMessage[],
  ids?: readonly TokenId[],
): TokenId[] | null {
  try {
    const prompts = probeTexts.map((probe) => source.encode(source.render(later(probe))));
    const [one = [], ...others] = ids ? [ids, ...prompts] : prompts;
    const end = one.findIndex((id, row) => others.some((other) => other[row] !== id));
    return one.slice(0, end < 0 ? one.length : end);
  } catch (error) {
    if (error instanceof InputError) return null;
    throw error;
  }
}

/** A reply and what comes after it: the user's next message, or the results of its calls. */
function turn({ content, toolCalls }: Reply, probe: string): ChatMessage[] {
  if (toolCalls.length === 0) return [{ role: "assistant", content }, user(probe)];
  // Calls' ids aren't known either. Some templates want nine letters and digits.
  const ids = toolCalls.map((_, index) => String(index).padStart(9, probe.trim()));
  const calls = toolCalls.map((fn, index) => ({ id: ids[index]!, type: "function", function: fn }));
  const results = ids.map((id) => ({ role: "tool", tool_call_id: id, content: probe }));
  return [{ role: "assistant", content, tool_calls: calls }, ...results];
}

function user(content: string): ChatMessage {
  return { role: "user", content };
}

import type { TokenId } from "../../ids.ts";
import type { PrefixMark, RoundRequest } from "../../rounds/live-stream.ts";
import type { GatePrompt } from "./gate-prompts.ts";

/** A prompt with what its stream asks of cache and schedule. */
export interface StreamPrompt extends GatePrompt {
  readonly marks?: readonly PrefixMark[];
  readonly priority?: NonNullable<RoundRequest["priority"]>;
}

/** What the prompts of a cell are made from. */
export interface Cast {
  readonly streams: number;
  /** Differs from cell to cell. */
  readonly turn: number;
  readonly prompts: readonly GatePrompt[];
  /** Whether the first one should take several chunks. */
  readonly amid: boolean;
  /** The whole reply to a prompt, drawn greedily. */
  reply(prompt: GatePrompt): Promise<readonly TokenId[]>;
}

/** The next ones of the list. */
export async function apart({ streams, turn, prompts, amid }: Cast): Promise<StreamPrompt[]> {
  const longest = prompts.reduce((a, b) => (b.ids.length > a.ids.length ? b : a));
  return Array.from({ length: streams }, (_, at) =>
    amid && at === 0 ? longest : pickPrompt(prompts, turn + at),
  );
}

/** Without marks, but for where a stream has to wait. */
export async function marked(cast: Cast): Promise<StreamPrompt[]> {
  return (await apart(cast)).map((prompt) => ({ ...prompt, marks: [] }));
}

/** Every second one has to go whenever another comes; of these, every second one's state is cached. */
export async function someBehind(cast: Cast): Promise<StreamPrompt[]> {
  return (await apart(cast)).map((prompt, at) => ({
    ...prompt,
    ...(at % 2 === 0 && { priority: "background" }),
    ...(at % 4 === 0 && { marks: [] }),
  }));
}

/** A system's text, say, and what different users ask. */
export async function oneBeginning({ streams, turn, prompts }: Cast): Promise<StreamPrompt[]> {
  const { name, ids, cut } = conversationOf(prompts, turn);
  return Array.from({ length: streams }, (_, at) => {
    const tail = pickPrompt(prompts, turn + at).ids.slice(0, 40);
    const all = [...ids.slice(0, cut), ...tail];
    const marks = marksAt(all, [cut, "shared"], [all.length - 1, "history"]);
    return { name: `${name}, then ${pickPrompt(prompts, turn + at).name}`, ids: all, marks };
  });
}

/** Marked in its middle, and before its last token. */
export async function onePrompt({ streams, turn, prompts }: Cast): Promise<StreamPrompt[]> {
  const { name, ids, cut } = conversationOf(prompts, turn);
  const marks = marksAt(ids, [cut, "rewind"], [ids.length - 1, "history"]);
  return Array.from({ length: streams }, () => ({ name, ids, marks }));
}

/** A conversation, and several ways in which it goes on. */
export async function forks({ streams, turn, prompts, reply }: Cast): Promise<StreamPrompt[]> {
  const { name, ids, cut } = conversationOf(prompts, turn);
  const opener = { name, ids, marks: marksAt(ids, [cut, "rewind"]) };
  const sofar = [...ids, ...(await reply(opener))];
  const others = Array.from({ length: streams - 1 }, (_, at) => {
    const next = pickPrompt(prompts, turn + at);
    const all = [...sofar, ...next.ids.slice(0, 24)];
    return { name: `${name}, its reply, ${next.name}`, ids: all, marks: [] };
  });
  return [opener, ...others];
}

type MarkAt = readonly [rows: number, kind: PrefixMark["kind"]];

const marksAt = (ids: readonly TokenId[], ...marks: readonly MarkAt[]): PrefixMark[] =>
  marks.flatMap(([rows, kind]) => (rows > 0 && rows < ids.length ? [{ rows, kind }] : []));

/** What several streams begin with. */
interface Conversation extends GatePrompt {
  /** Where its beginning ends that others share: at a KV page's edge, beside it, or in its middle. */
  readonly cut: number;
}

const cuts = [64, 63, 65, 100, 128] as const;
const conversationTokens = 140;

/** One of a list, round and round. */
const pickPrompt = (prompts: readonly GatePrompt[], turn: number): GatePrompt =>
  prompts[turn % prompts.length]!;

/** One of a few, of several pages. */
function conversationOf(prompts: readonly GatePrompt[], turn: number): Conversation {
  const number = turn % cuts.length;
  const ids: TokenId[] = [];
  for (let next = number; ids.length < conversationTokens; next++) {
    ids.push(...pickPrompt(prompts, next).ids);
  }
  return {
    name: `conversation ${number + 1}`,
    ids: ids.slice(0, conversationTokens),
    cut: cuts[number]!,
  };
}

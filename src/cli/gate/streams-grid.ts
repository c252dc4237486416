import { allAtOnce, type JoinPattern, joinPatterns } from "./streams-joins.ts";
import { type LeavePattern, leavePatterns, wholeReply } from "./streams-leaves.ts";
import { longSettings, type StreamsSetting, streamsSettings } from "./streams-settings.ts";
import { randomInts, shuffled } from "./timeline.ts";

const seed = 20261205;
const streamCounts = [2, 4, 8] as const;
/** Rounds through all kinds of cells, with other prompts, samplings, drafts and places each time. */
const laps = 5;

/** Which of a cell's streams draft. */
export type Mix = "plain" | "drafted" | "drafted and plain";
const mixes: readonly Mix[] = ["plain", "drafted", "drafted and plain"];

/** A cell: so many streams, in one setting, that come and go by some pattern. */
export interface StreamsCell {
  readonly name: string;
  /** What differs from cell to cell, prompts and samplings say, goes by this. */
  readonly turn: number;
  readonly streams: number;
  readonly setting: StreamsSetting;
  readonly join: JoinPattern;
  readonly leave: LeavePattern;
  readonly mix: Mix;
}

/** Every count × setting × way to come × way to go, several times; settings take turns. */
export function streamsGrid(replyTokens: number): StreamsCell[] {
  const random = randomInts(seed);
  const joins = joinPatterns(0, replyTokens).map((_, kind) => kind);
  const ways = streamCounts.flatMap((streams) =>
    joins.flatMap((join) => leavePatterns.map((leave) => ({ streams, join, leave }))),
  );
  const order = Array.from({ length: laps }).flatMap(() => {
    const columns = streamsSettings.map(() => shuffled(ways, random));
    return ways.flatMap((_, row) =>
      streamsSettings.map((setting, column) => ({ setting, ...columns[column]![row]! })),
    );
  });
  return order.map(({ streams, setting, join, leave }, turn) =>
    named({
      name: `#${turn + 1}`,
      turn,
      streams,
      setting,
      join: joinPatterns(turn, replyTokens)[join]!,
      leave,
      mix: mixes[turn % mixes.length]!,
    }),
  );
}

/** Replies so long that streams outgrow what they were admitted with: all of them, and at one pace. */
export function longCells(): StreamsCell[] {
  const leave: LeavePattern = {
    name: "by length",
    leave: (stream, _, tokens) => wholeReply(tokens - stream),
  };
  const counts = streamCounts.flatMap((streams) =>
    longSettings.map((setting) => ({ streams, setting })),
  );
  const same = { turn: 0, join: allAtOnce, leave, mix: "plain" } as const;
  return counts.map((count, at) => named({ name: `long #${at + 1}`, ...same, ...count }));
}

function named(cell: StreamsCell): StreamsCell {
  const { name, streams, setting, join, leave, mix } = cell;
  const words = [`${streams} streams`, setting.name, join.name, leave.name, mix];
  return { ...cell, name: `${name}: ${words.join(", ")}` };
}

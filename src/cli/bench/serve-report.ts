import type { ReplyCase, StreamsCase } from "./serve-cases.ts";
import {
  isSteady,
  type Measured,
  type Paired,
  pairedOf,
  speedOf,
  type Turns,
} from "./serve-turns.ts";
import { rounded, type Spread, spread } from "./spread.ts";

/** Speeds are a client's: HTTP, events and their parsing count. */
export interface CaseReport {
  readonly tokens_per_second: Spread;
  readonly first_token_ms: Spread;
  readonly against?: Paired;
}

export interface ServeReplyReport extends CaseReport {
  readonly name: string;
  readonly drafted: boolean;
  readonly tokens: number;
  readonly tokens_per_round: number | null;
  /** Whether it is the same reply every time, and the plain one. */
  readonly equal: boolean;
  /** Of this speed over the plain one's, medians. */
  readonly of_plain: number;
}

export interface ServePrefillReport extends CaseReport {
  readonly tokens: number;
}

export interface ServeStreamsReport extends CaseReport {
  readonly streams: number;
  readonly drafted: boolean;
  readonly tokens_per_round: number | null;
  /** Of this speed, all tokens together, over that of one plain stream, medians. */
  readonly of_one_plain: number;
  /** Whether each reply is the one that the same request has alone; absent where nobody asked. */
  readonly equal_alone?: boolean;
  /** Whether each reply is the one that the same request has alone and without drafts. */
  readonly equal_serial?: boolean;
}

export interface ServeBenchReport {
  readonly bench: "serve";
  readonly model: string;
  readonly backend: string;
  readonly cpu: string;
  readonly cores: number;
  readonly node: string;
  readonly repeats: number;
  readonly replies: readonly ServeReplyReport[];
  readonly prefill: readonly ServePrefillReport[];
  readonly streams: readonly ServeStreamsReport[];
  /** What was left out, and why. */
  readonly not_run: readonly string[];
}

/** Replies of all streams, each alone; null where nobody asked. */
export interface Solos {
  readonly alone: Readonly<Record<"plain" | "drafted", readonly string[]>> | null;
  readonly serial: readonly string[] | null;
}

export function replyReport(
  { kind, drafted }: ReplyCase,
  turns: Turns,
  plain: readonly Measured[],
): ServeReplyReport {
  const report = caseReport(turns);
  return {
    name: kind.name,
    drafted,
    tokens: turns.own[0]!.tokens,
    ...report,
    tokens_per_round: perRound(turns.own, 1),
    equal: isSteady(turns.own, plain[0]!.tokenShas),
    of_plain: rounded(report.tokens_per_second.median / speedOf(plain).median),
  };
}

export function streamsReport(
  { streams, drafted }: StreamsCase,
  turns: Turns,
  onePlain: number,
  { alone, serial }: Solos,
): ServeStreamsReport {
  const report = caseReport(turns);
  const isEqual = (shas: readonly string[]) => isSteady(turns.own, shas.slice(0, streams));
  return {
    streams,
    drafted,
    ...report,
    tokens_per_round: perRound(turns.own, streams),
    of_one_plain: rounded(report.tokens_per_second.median / onePlain),
    ...(alone && { equal_alone: isEqual(alone[drafted ? "drafted" : "plain"]) }),
    ...(serial && { equal_serial: isEqual(serial) }),
  };
}

export function caseReport(turns: Turns): CaseReport {
  const paired = pairedOf(turns);
  return {
    tokens_per_second: speedOf(turns.own),
    first_token_ms: spread(turns.own.map(({ firstTokenMs }) => firstTokenMs)),
    ...(paired && { against: paired }),
  };
}

/** Tokens after the first of each reply, a round; null where there were none. */
function perRound(measured: readonly Measured[], replies: number): number | null {
  const sum = (of: (each: Measured) => number) =>
    measured.reduce((total, each) => total + of(each), 0);
  const rounds = sum((each) => each.rounds);
  return rounds === 0 ? null : rounded(sum((each) => each.tokens - replies) / rounds);
}

import { createHash } from "node:crypto";
import type { Backend } from "../../backend/backend.ts";
import type { Candidates } from "../../backend/candidates.ts";
import type { Drafting } from "../../draft/drafting.ts";
import { invariant } from "../../errors.ts";
import type { TokenId } from "../../ids.ts";
import { promptChunkRows } from "../../limits.ts";
import type { RoundOutcome, RoundRequest } from "../../rounds/live-stream.ts";
import { type LoopCounts, type LoopOptions, RoundLoop } from "../../rounds/loop.ts";
import { MadeUpClock } from "./gate-times.ts";
import { NanMemory } from "./nan-memory.ts";

/** What is asked for, and where the reply ends. */
export interface Asked extends Omit<RoundRequest, "draft" | "fingerprint"> {
  /** After how many tokens it ends as by a stop string; null: nowhere. */
  readonly stopAfter: number | null;
  /** Whether every token is drawn from its whole row, and not from as few candidates as its sampling needs. */
  readonly wide: boolean;
}

/** A reply, token by token. */
export interface Served {
  readonly ids: readonly TokenId[];
  /**
   * By token, a hash of the whole row that it was drawn from: its ids and logits, byte for byte. Null where
   * it was drawn from less.
   */
  readonly rows: readonly string[] | null;
  readonly outcome: RoundOutcome;
}

/** What to serve, and with what drafts; without a drafting, by the engine's serial path. */
export type Turn = readonly [asked: Asked, drafting: Drafting | null];

/** Hears of a reply while it comes. */
export interface ReplyEar {
  /** @param tokens how many there are now */
  token(tokens: number): void;
  finished(): void;
}

/** A reply that is under way. */
export interface Reply {
  readonly served: Promise<Served>;
  cancel(): void;
}

/** Keeps a drafter's context without ever drafting: a row a round. */
export const silentDrafting: Drafting = {
  push: () => {},
  wish: () => ({ kind: "none" }),
  choose: () => null,
  landed: () => {},
  idle: () => {},
};

/** Replies by the engine's own rounds, from slots and pages full of NaN. */
export class GateLoop implements AsyncDisposable {
  readonly #backend: Backend;
  readonly #nan: NanMemory | null;
  readonly #loop: RoundLoop;
  readonly #clock = new MadeUpClock();
  #drafting: Drafting = silentDrafting;

  /**
   * @param backend the loop's own from now on
   * @param nan fills the backend; null: replies find what others left
   */
  constructor(
    backend: Backend,
    options: Partial<Pick<LoopOptions, "chunkRows" | "cache">> = {},
    nan: NanMemory | null = new NanMemory(backend),
  ) {
    this.#backend = backend;
    this.#nan = nan;
    const chunkRows = Math.min(promptChunkRows, backend.info.rowsMax);
    const drafting = () => this.#drafting;
    this.#loop = new RoundLoop(backend, { chunkRows, ...options, drafting, clock: this.#clock });
  }

  get counts(): LoopCounts {
    return this.#loop.counts;
  }

  async serve(...turn: Turn): Promise<Served> {
    return (await this.together([turn]))[0]!;
  }

  /** Streams that share their rounds, from the first on. */
  async together(turns: readonly Turn[]): Promise<readonly Served[]> {
    await this.spoil(turns);
    const served = await Promise.all(turns.map((turn) => this.submit(turn).served));
    this.checkFree();
    return served;
  }

  /** Begins anew, while no stream is there: memory is NaN, and the same times come again. */
  async spoil(turns: readonly Turn[]): Promise<void> {
    const places = turns.map(([asked]) => asked);
    await this.#nan?.fill(this.#backend.info, places);
    this.#clock.restart();
  }

  submit([asked, drafting]: Turn, ear: ReplyEar | null = null): Reply {
    const { stopAfter, wide, ...request } = asked;
    const ids: TokenId[] = [];
    const rows: string[] | null = wide ? [] : null;
    if (drafting) this.#drafting = drafting;
    const { promise, resolve } = Promise.withResolvers<Served>();
    const cancel = this.#loop.submit(
      { ...request, fingerprint: true, draft: drafting !== null },
      {
        prefilled: () => {},
        ...(rows && { row: (candidates) => rows.push(hashOf(candidates)) }),
        token: (id) => {
          ids.push(id);
          ear?.token(ids.length);
          return ids.length === stopAfter;
        },
        finished: (outcome) => {
          ear?.finished();
          resolve({ ids, rows, outcome });
        },
      },
    );
    return { served: promise, cancel };
  }

  /** Once all streams have ended, and nothing is cached. @throws InvariantError */
  checkFree(): void {
    const { slots, pages } = this.#backend.info;
    const { free } = this.#loop;
    invariant(free.slots === slots && free.pages === pages, "a stream kept a slot or a page");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
  }
}

function hashOf({ ids, logits }: Candidates): string {
  return createHash("sha256").update(ids).update(logits).digest("base64");
}

/**
 * The first thing in which a reply differs from the serial one; null where all bytes are the same, those of
 * its rows where it has them.
 * @param expected with rows
 * @param context whether the drafter's context is compared too
 */
export function differenceOf(expected: Served, actual: Served, context: boolean): string | null {
  const { reason, stateSha, contextSha } = actual.outcome;
  const right = expected.outcome;
  const different = tokenDifference(expected, actual);
  if (different) return different;
  const tokens = actual.ids.length;
  const end = `${reason} after ${tokens} tokens`;
  const rightEnd = `${right.reason} after ${expected.ids.length} tokens`;
  if (end !== rightEnd) return `it ended by ${end}, not by ${rightEnd}`;
  if (stateSha !== right.stateSha) return `the state differs after ${tokens} tokens`;
  if (context && contextSha !== right.contextSha) {
    return `the drafter's context differs after ${tokens} tokens`;
  }
  return null;
}

/** The first token, or row of logits, in which two replies differ, as far as both go. */
export function tokenDifference(expected: Served, actual: Served): string | null {
  const { error } = actual.outcome;
  const failed = expected.outcome.error;
  if (failed) return `the serial reply failed: ${failed.message}`;
  if (error) return `it failed at token ${actual.ids.length}: ${error.message}`;
  const tokens = Math.min(expected.ids.length, actual.ids.length);
  for (let at = 0; at < tokens; at++) {
    if (actual.rows && actual.rows[at] !== expected.rows?.[at])
      return `the logits of token ${at} differ`;
    const [id, other] = [actual.ids[at], expected.ids[at]];
    if (id !== other) return `token ${at} is ${id}, not ${other}`;
  }
  return null;
}

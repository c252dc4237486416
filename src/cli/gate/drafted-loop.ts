import { createHash } from "node:crypto";
import type { Backend, Snapshot } from "../../backend/backend.ts";
import type { Candidates } from "../../backend/candidates.ts";
import type { Drafting } from "../../draft/drafting.ts";
import { invariant } from "../../errors.ts";
import { type PageId, pageId, type SlotId, slotId, type TokenId } from "../../ids.ts";
import { pageRows, promptChunkRows } from "../../limits.ts";
import { planPass } from "../../model/plan.ts";
import type { RoundOutcome, RoundRequest } from "../../rounds/live-stream.ts";
import { RoundLoop } from "../../rounds/loop.ts";
import { MadeUpClock } from "./drafted-times.ts";
import { poisoned } from "./rows.ts";

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

/** Keeps a drafter's context without ever drafting: a row a round. */
export const silentDrafting: Drafting = {
  push: () => {},
  wish: () => ({ kind: "none" }),
  choose: () => null,
  landed: () => {},
  idle: () => {},
};

/** Replies by the engine's own rounds, each from slots and pages full of NaN. */
export class GateLoop implements AsyncDisposable {
  readonly #backend: Backend;
  readonly #loop: RoundLoop;
  readonly #clock = new MadeUpClock();
  /** What a slot and its share of the pages begin with; null before the first reply. */
  #nan: Snapshot | null = null;
  #drafting: Drafting = silentDrafting;

  /** @param backend the loop's own from now on */
  constructor(backend: Backend) {
    this.#backend = backend;
    const chunkRows = Math.min(promptChunkRows, backend.info.rowsMax);
    const drafting = () => this.#drafting;
    this.#loop = new RoundLoop(backend, { chunkRows, drafting, clock: this.#clock });
  }

  async serve(...turn: Turn): Promise<Served> {
    return (await this.together([turn]))[0]!;
  }

  /** Streams that share their rounds, from the first on. */
  async together(turns: readonly Turn[]): Promise<readonly Served[]> {
    await this.#spoil(turns);
    this.#clock.restart();
    const served = await Promise.all(turns.map((turn) => this.#submit(...turn)));
    const { slots, pages } = this.#backend.info;
    const { free } = this.#loop;
    invariant(free.slots === slots && free.pages === pages, "a stream kept a slot or a page");
    return served;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
  }

  /** The same reply comes again and again: what one run forgets to write, the last must not have left. */
  async #spoil(turns: readonly Turn[]): Promise<void> {
    this.#nan ??= await this.#poison();
    for (const [at, pages] of sharesOf(this.#backend).entries()) {
      const slot = slotId(at);
      this.#backend.open(slot);
      this.#backend.restore(slot, pages, this.#nan);
      const [asked] = turns[at] ?? [];
      if (asked && this.#backend.info.drafter) await this.#spoilFeatures(slot, pages, asked);
      this.#backend.release(slot);
    }
  }

  /** Features are in no snapshot: rows behind a state of NaN leave NaN in the reply's places. */
  async #spoilFeatures(slot: SlotId, pages: readonly PageId[], asked: Asked): Promise<void> {
    const ids = new Array<TokenId>(Math.min(asked.maxTokens, this.#backend.info.rowsMax)).fill(0);
    const start = asked.promptIds.length;
    const slots = { stateSlot: slot, nextSlot: slot };
    const rows = planPass([{ ids, start, ...slots, pages, draw: "none", candidates: 0 }]);
    await this.#backend.read(this.#backend.prefill(rows));
  }

  async #poison(): Promise<Snapshot> {
    const [pages] = sharesOf(this.#backend);
    this.#backend.open(slotId(0));
    const snapshot = await this.#backend.save(slotId(0), pages!, pages!.length * pageRows);
    this.#backend.release(slotId(0));
    return poisoned(snapshot);
  }

  #submit({ stopAfter, wide, ...request }: Asked, drafting: Drafting | null): Promise<Served> {
    const ids: TokenId[] = [];
    const rows: string[] | null = wide ? [] : null;
    if (drafting) this.#drafting = drafting;
    const { promise, resolve } = Promise.withResolvers<Served>();
    this.#loop.submit(
      { ...request, fingerprint: true, draft: drafting !== null },
      {
        prefilled: () => {},
        ...(rows && { row: (candidates) => rows.push(hashOf(candidates)) }),
        token: (id) => ids.push(id) === stopAfter,
        finished: (outcome) => resolve({ ids, rows, outcome }),
      },
    );
    return promise;
  }
}

/** Every slot with its share of the pages. */
function sharesOf({ info }: Backend) {
  const each = Math.floor(info.pages / info.slots);
  return Array.from({ length: info.slots }, (_, slot) =>
    Array.from({ length: each }, (_, page) => pageId(slot * each + page)),
  );
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
  const { reason, error, stateSha, contextSha } = actual.outcome;
  const right = expected.outcome;
  if (right.error) return `the serial reply failed: ${right.error.message}`;
  if (error) return `it failed at token ${actual.ids.length}: ${error.message}`;
  const tokens = Math.min(expected.ids.length, actual.ids.length);
  for (let at = 0; at < tokens; at++) {
    if (actual.rows && actual.rows[at] !== expected.rows?.[at])
      return `the logits of token ${at} differ`;
    const [id, other] = [actual.ids[at], expected.ids[at]];
    if (id !== other) return `token ${at} is ${id}, not ${other}`;
  }
  const end = `${reason} after ${actual.ids.length} tokens`;
  const rightEnd = `${right.reason} after ${expected.ids.length} tokens`;
  if (end !== rightEnd) return `it ended by ${end}, not by ${rightEnd}`;
  if (stateSha !== right.stateSha) return `the state differs after ${tokens} tokens`;
  if (context && contextSha !== right.contextSha) {
    return `the drafter's context differs after ${tokens} tokens`;
  }
  return null;
}

import type { Backend } from "../../backend/backend.ts";
import { firstRows } from "../../backend/windows.ts";
import { type PageId, pageId, slotId } from "../../ids.ts";
import type { DrafterShape } from "../../model/drafter-shape.ts";
import { planPass, type SegmentRequest } from "../../model/plan.ts";
import { inRow } from "./in-row.ts";
import type { PassBench } from "./pass-bench.ts";
import { rounded, type Spread, spread } from "./spread.ts";

/** Whole drafted rounds beside plain steps, in turns. */
export interface DraftedReport {
  readonly context: number;
  /** Rows of a block and of the window that verifies it. */
  readonly rows: number;
  readonly plain_ms: Spread;
  /** Extending the context by a window's rows and drafting a block, up to having the drafts. */
  readonly draft_ms: Spread;
  /** Extend, draft, verify and keep of every row, one round behind the other. */
  readonly round_ms: Spread;
  /** round over plain, medians of this run. */
  readonly of_plain: number;
}

/** A slot's drafted rounds at a fixed place; what the rows hold doesn't matter to the time. */
class DraftedRounds {
  readonly #backend: Backend;
  readonly #drafter: DrafterShape;
  readonly #context: number;
  readonly #pages: readonly PageId[];

  constructor(backend: Backend, drafter: DrafterShape, context: number) {
    this.#backend = backend;
    this.#drafter = drafter;
    this.#context = context;
    this.#pages = Array.from({ length: backend.info.pages }, (_, index) => pageId(index));
  }

  async draft(): Promise<void> {
    const { blockRows, candidates } = this.#drafter;
    const given = Math.min(blockRows, this.#context);
    if (given > 0) this.#backend.extend(planPass([this.#segment(this.#context - given, given)]));
    const block = {
      ...this.#segment(this.#context, blockRows),
      draw: "block",
      candidates,
    } as const;
    await this.#backend.read(this.#backend.draft(planPass([block])));
  }

  async round(): Promise<void> {
    await this.draft();
    const { blockRows } = this.#drafter;
    const rows = this.#segment(this.#context, blockRows);
    const handle = this.#backend.verify(planPass([{ ...rows, draw: "all", window: true }]));
    await this.#backend.read(handle);
    this.#backend.keep(handle, [firstRows(blockRows)]);
  }

  #segment(start: number, rows: number): SegmentRequest {
    const ids = Array.from({ length: rows }, (_, row) => (start + row) % 1000);
    const slot = slotId(0);
    const slots = { stateSlot: slot, nextSlot: slot };
    return { ids, start, ...slots, pages: this.#pages, draw: "none", candidates: 1 };
  }
}

/** Measures plain steps, drafts and whole rounds in turns. */
export async function benchDraftedRounds(
  backend: Backend,
  bench: PassBench,
  drafter: DrafterShape,
  context: number,
  repeats: number,
): Promise<DraftedReport> {
  const rounds = new DraftedRounds(backend, drafter, context);
  const times: Record<"plain" | "draft" | "round", number[]> = { plain: [], draft: [], round: [] };
  for (let repeat = 0; repeat < repeats; repeat++) {
    times.plain.push(await inRow(() => bench.run({ rows: 1, context, chunk: 1 })));
    times.round.push(await inRow(() => rounds.round()));
    times.draft.push(await inRow(() => rounds.draft()));
  }
  const [plain, draft, round] = [spread(times.plain), spread(times.draft), spread(times.round)];
  return {
    context,
    rows: drafter.blockRows,
    plain_ms: plain,
    draft_ms: draft,
    round_ms: round,
    of_plain: rounded(round.median / plain.median),
  };
}

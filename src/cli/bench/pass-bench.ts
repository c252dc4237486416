import type { Backend } from "../../backend/backend.ts";
import { systemClock } from "../../clock.ts";
import { type PageId, pageId, slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";

const warmUpMs = 1000;

/** What one measured run is: `rows` rows that begin at `context`, in passes of at most `chunk` rows. */
export interface PassCase {
  readonly rows: number;
  readonly context: number;
  readonly chunk: number;
}

/** Times of one run. */
export interface PassTimes {
  /** From giving the first plan to having the last drawn ids. */
  readonly ms: number;
  /** The part of it that the host spends on giving plans. */
  readonly encodeMs: number;
}

/** Runs passes over one slot. What the rows hold doesn't matter to the time. */
export class PassBench {
  readonly #backend: Backend;
  readonly #pages: readonly PageId[];

  constructor(backend: Backend) {
    this.#backend = backend;
    this.#pages = Array.from({ length: backend.info.pages }, (_, index) => pageId(index));
    backend.open(slotId(0));
  }

  /** Plain steps until the GPU's clock has risen: one that was idle takes a while. */
  async warmUp(): Promise<void> {
    const until = systemClock.nowMs() + warmUpMs;
    while (systemClock.nowMs() < until) await this.run({ rows: 1, context: 0, chunk: 1 });
  }

  async run({ rows, context, chunk }: PassCase): Promise<PassTimes> {
    const begin = systemClock.nowMs();
    let encodeMs = 0;
    for (let done = 0; done < rows; done += chunk) {
      const count = Math.min(chunk, rows - done);
      const plan = planPass([
        {
          ids: this.#ids(count, context + done),
          start: context + done,
          stateSlot: slotId(0),
          nextSlot: slotId(0),
          pages: this.#pages,
          draw: rows > 16 ? "last" : "all",
          candidates: 1,
        },
      ]);
      const given = systemClock.nowMs();
      const handle = this.#backend.verify(plan);
      encodeMs += systemClock.nowMs() - given;
      await this.#backend.read(handle);
    }
    return { ms: systemClock.nowMs() - begin, encodeMs };
  }

  #ids(count: number, start: number): number[] {
    const { vocabSize } = this.#backend.info.shape;
    return Array.from({ length: count }, (_, i) => ((start + i) * 7919) % vocabSize);
  }
}

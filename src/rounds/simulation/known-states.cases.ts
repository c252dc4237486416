import type { HeldState } from "../../backend/backend.ts";
import type { TokenId } from "../../ids.ts";
import type { LiveStream } from "../live-stream.ts";
import type { Journal } from "./journal.cases.ts";

interface Known {
  readonly ids: readonly TokenId[];
  readonly context: boolean;
}

/** What the cache could go on from, by what the device holds: the longest is always taken. */
export class KnownStates {
  readonly #journal: Journal;
  readonly #drafts: boolean;
  readonly #states = new Map<HeldState, Known>();
  #longest = 0;

  constructor(journal: Journal, drafts: boolean) {
    this.#journal = journal;
    this.#drafts = drafts;
  }

  held(held: HeldState, { ids, rows, drafting }: LiveStream): void {
    const context = !this.#drafts || drafting !== null;
    this.#states.set(held, { ids: ids.slice(0, rows), context });
  }

  dropped(held: HeldState): void {
    this.#states.delete(held);
  }

  beginning({ ids, request, drafting }: LiveStream): void {
    const needsContext = this.#drafts && drafting !== null;
    this.#longest = 0;
    if (!request.marks) return;
    for (const { ids: known, context } of this.#states.values()) {
      if (known.length >= ids.length || (needsContext && !context)) continue;
      if (known.length > this.#longest && known.every((id, at) => ids[at] === id)) {
        this.#longest = known.length;
      }
    }
  }

  /** @param freePages with none, the page that a state ends in can't be copied */
  begun({ id, rows }: LiveStream, freePages: number): void {
    const longest = this.#longest;
    this.#journal.expect(rows >= longest || freePages === 0, "cache", () => {
      return `stream ${id} goes on from row ${rows}, though ${longest} are known`;
    });
  }
}

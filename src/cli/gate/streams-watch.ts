import type { Backend, PassHandle } from "../../backend/backend.ts";
import type { SlotId } from "../../ids.ts";
import type { Plan } from "../../model/plan.ts";
import { type ViewSizes, viewOf } from "./backend-view.ts";
import type { StreamsCoverage } from "./streams-coverage.ts";

/** Sees what a cell's rounds ask of the backend. */
export class CellWatch {
  readonly #coverage: StreamsCoverage;
  /** Slots in which a prompt was begun, and not finished. */
  readonly #amid = new Set<SlotId>();
  /** Whether a slot was given back, and nobody has said yet that its stream is over. */
  #released = false;
  passes = 0;
  chunks = 0;
  parked = 0;
  /** How often a stream went on from a held state. */
  resumes = 0;
  /** Hears of each pass before it is given. */
  onPass: () => void = () => {};

  constructor(coverage: StreamsCoverage) {
    this.#coverage = coverage;
  }

  /** Whether a prompt is being computed, and will be for longer than a pass. */
  get amidPrompt(): boolean {
    return this.#amid.size > 0;
  }

  /** The backend as a cell may use it, watched. */
  view(backend: Backend, sizes: ViewSizes): Backend {
    return viewOf(backend, sizes, {
      open: (slot) => {
        this.#settle();
        backend.open(slot);
      },
      release: (slot) => {
        this.#settle();
        this.#released = true;
        this.#amid.delete(slot);
        backend.release(slot);
      },
      prefill: (plan) => this.#prefill(backend, plan),
      verify: (plan) => this.#verify(backend, plan),
      resume: (slot, held) => {
        this.resumes++;
        backend.resume(slot, held);
      },
      copyPage: (from, to) => {
        this.#coverage.add("copied");
        backend.copyPage(from, to);
      },
    });
  }

  /** A stream is over: its slot was given back for that. */
  finished(): void {
    this.#released = false;
  }

  /** A slot that was given back while its stream is not over was taken from it. */
  #settle(): void {
    if (this.#released) this.parked++;
    this.#released = false;
  }

  #prefill(backend: Backend, plan: Plan): PassHandle {
    this.#settle();
    this.chunks++;
    this.passes++;
    this.onPass();
    for (const { stateSlot } of plan.segments) {
      if (plan.draws.length === 0) this.#amid.add(stateSlot);
      else this.#amid.delete(stateSlot);
    }
    return backend.prefill(plan);
  }

  #verify(backend: Backend, plan: Plan): PassHandle {
    this.#settle();
    this.passes++;
    this.onPass();
    const { segments } = plan;
    const windows = segments.filter(({ window }) => window).length;
    if (segments.length === 8) this.#coverage.add("eight");
    if (windows > 1) this.#coverage.add("windows");
    if (windows > 0 && windows < segments.length) this.#coverage.add("mixed");
    const pages = segments.flatMap((segment) => segment.pages);
    if (new Set(pages).size < pages.length) this.#coverage.add("sharedPages");
    return backend.verify(plan);
  }
}

/** What a worker counts, for Prometheus. */
import { exposition, type Family, LabelledCounter } from "../serve/exposition.ts";
import type { BatchCounts } from "./batches.ts";

/** What became of a request that a worker had. */
export type Outcome =
  | "done"
  /** The reply is an error that another try wouldn't change. */
  | "refused"
  /** It is tried again. */
  | "retried"
  /** Too many workers died over it. */
  | "lost"
  /** Another worker has it. */
  | "handed_on";

export class WorkerCounts {
  readonly #outcomes = new LabelledCounter();

  add(outcome: Outcome): void {
    this.#outcomes.add({ outcome });
  }

  /**
   * @param running requests that this worker has
   * @param queued of all batches that it may serve together
   */
  text(running: number, queued: BatchCounts): string {
    const states = Object.entries(queued).map(([state, value]) => ({ labels: { state }, value }));
    const families: Family[] = [
      {
        ...{ name: "deltafold_batch_outcomes_total", type: "counter" },
        ...{ help: "Requests of batches that this worker had.", samples: this.#outcomes.samples },
      },
      {
        ...{ name: "deltafold_batch_running", type: "gauge" },
        ...{ help: "Requests of batches here.", samples: [{ labels: {}, value: running }] },
      },
      {
        ...{ name: "deltafold_batch_requests", type: "gauge" },
        ...{ help: "Requests of all batches that this worker may serve.", samples: states },
      },
    ];
    return exposition(families);
  }
}

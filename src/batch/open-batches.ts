import { Worker } from "bullmq";
import type { BatchCounts, Batches, BatchRecord, RequestData, RequestJob } from "./batches.ts";
import { warnOfRefusal } from "./connection.ts";
import { unmet, type WorkerIdentity } from "./identity.ts";
import type { BatchResult } from "./result.ts";

export type RequestWorker = Worker<RequestData, BatchResult>;

/** A request that this process has. */
export interface Taken {
  readonly record: BatchRecord;
  /** Through which it came. */
  readonly worker: RequestWorker;
  readonly job: RequestJob;
  /** Of its lock. */
  readonly token: string;
  /** Aborted once it is somebody else's. */
  readonly lost: AbortController;
}

export interface OpenOptions {
  readonly batches: Batches;
  readonly identity: () => WorkerIdentity;
  readonly lockMs: number;
  readonly warn: (message: string) => void;
}

type Open = Pick<Taken, "record" | "worker">;

const states: readonly (keyof BatchCounts)[] = ["waiting", "delayed", "running", "done"];

/** The batches that a worker may serve, the oldest first. */
export class OpenBatches {
  readonly #options: OpenOptions;
  /** By the whole record: one that was cancelled and submitted again is another. */
  readonly #open = new Map<string, Open>();
  readonly #refused = new Set<string>();
  #tokens = 0;

  constructor(options: OpenOptions) {
    this.#options = options;
  }

  /**
   * Finds out which there are.
   * @param isUsed whether requests came through a worker that aren't done
   */
  async look(isUsed: (worker: RequestWorker) => boolean): Promise<void> {
    const { batches, identity } = this.#options;
    const self = identity();
    const records = (await batches.list()).filter((each) => !each.cancelled);
    const fitting = records.filter((record) => this.#fits(record, self));
    const wanted = new Map(fitting.map((record) => [JSON.stringify(record), record]));
    for (const [key, { worker }] of this.#open) {
      if (wanted.has(key) || isUsed(worker)) continue;
      this.#open.delete(key);
      await worker.close(true);
    }
    for (const [key, record] of wanted) {
      if (!this.#open.has(key)) this.#open.set(key, await this.#join(record));
    }
  }

  /** The next request; null where none waits. */
  async take(): Promise<Taken | null> {
    const { name } = this.#options.identity();
    for (const open of this.#open.values()) {
      const token = `${name}-${this.#tokens++}`;
      const job = await open.worker.getNextJob(token, { block: false });
      if (job) return { ...open, job, token, lost: new AbortController() };
    }
    return null;
  }

  /** Where the requests of all of them are. */
  async counts(): Promise<BatchCounts> {
    const sums = { waiting: 0, delayed: 0, running: 0, done: 0 };
    for (const { record } of this.#open.values()) {
      const counts = await this.#options.batches.counts(record.id);
      for (const state of states) sums[state] += counts[state];
    }
    return sums;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ worker }) => worker.close(true)));
  }

  #fits({ id, demands }: BatchRecord, self: WorkerIdentity): boolean {
    const reason = unmet(demands, self);
    if (reason === null) return true;
    if (!this.#refused.has(id)) this.#options.warn(`${id} is left to others: ${reason}`);
    this.#refused.add(id);
    return false;
  }

  /** Of BullMQ's worker, the check for requests that dead workers had runs by itself. */
  async #join(record: BatchRecord): Promise<Open> {
    const { batches, lockMs, warn } = this.#options;
    const worker: RequestWorker = new Worker<RequestData, BatchResult>(record.id, null, {
      ...batches.options,
      lockDuration: lockMs,
      stalledInterval: lockMs / 2,
      maxStalledCount: record.attempts - 1,
    });
    worker.on("error", (error) => warnOfRefusal(error, warn));
    worker.on("stalled", (id) => warn(`${record.id}: ${id} was given up by its worker`));
    await worker.startStalledCheckTimer();
    return { record, worker };
  }
}

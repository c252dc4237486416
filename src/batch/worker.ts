import { type Clock, pause, type SetAlarm, setAlarm, systemClock } from "../clock.ts";
import { isRefusal, warnOfRefusal } from "./connection.ts";
import { WorkerCounts } from "./metrics.ts";
import { OpenBatches, type OpenOptions, type RequestWorker, type Taken } from "./open-batches.ts";
import { type ServeOptions, serveRequest } from "./serve-request.ts";

/** How often it looks for batches. */
const lookMs = 1000;
/** Until it asks again for a request, where there was none. */
const idleMs = 200;
/** For the queue to hear of what is given back. It may be gone. */
const giveBackMs = 2000;
/** Between requests while this worker's device is gone: most should go to others. */
const unwellMs = 5000;

export interface WorkerParts extends OpenOptions, ServeOptions {
  /** Whether its device is there, or was last time. */
  readonly isWell?: () => boolean;
  /** Requests at once. */
  readonly slots: number;
  readonly clock?: Clock;
  readonly setAlarm?: SetAlarm;
}

/**
 * Serves the requests of batches, the oldest batch first. BullMQ says who has which request, keeps that
 * by locks which this renews, and hands on what a dead worker had.
 */
export class BatchWorker {
  readonly #parts: Required<WorkerParts>;
  readonly #open: OpenBatches;
  readonly #running = new Map<Taken, Promise<void>>();
  readonly #counts = new WorkerCounts();
  #lookAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: WorkerParts) {
    this.#parts = { clock: systemClock, setAlarm, isWell: () => true, ...parts };
    this.#open = new OpenBatches(parts);
  }

  /** In Prometheus' text format. */
  async metrics(): Promise<string> {
    return this.#counts.text(this.#running.size, await this.#open.counts());
  }

  /**
   * Takes requests until it is told to stop, lets those that run end, and gives the others back.
   * @param drainMs how long they may run then, asked once it stops
   */
  async run(stop: AbortSignal, drainMs: () => number): Promise<void> {
    const stopped = new Promise<void>((resolve) => stop.addEventListener("abort", () => resolve()));
    const stopRenewing = this.#renewLater();
    let step = Promise.resolve();
    while (!stop.aborted) {
      step = this.#step(stopped);
      await Promise.race([step, stopped]);
    }
    await Promise.race([step, pause(giveBackMs)]);
    await Promise.race([Promise.all(this.#running.values()), pause(drainMs())]);
    await Promise.race([this.#giveBack(), pause(giveBackMs)]);
    stopRenewing();
    await Promise.race([this.#open.close(), pause(giveBackMs)]);
  }

  async #step(stopped: Promise<void>): Promise<void> {
    if (this.#running.size >= this.#parts.slots) {
      await Promise.race([...this.#running.values(), stopped]);
      return;
    }
    if (!this.#parts.isWell()) await Promise.race([pause(unwellMs), stopped]);
    const taken = await this.#next();
    if (taken) this.#running.set(taken, this.#serve(taken));
    else await Promise.race([pause(idleMs), stopped]);
  }

  async #next(): Promise<Taken | null> {
    const { clock, warn } = this.#parts;
    try {
      if (clock.nowMs() >= this.#lookAtMs) {
        await this.#open.look((worker) => this.#of(worker).length > 0);
        this.#lookAtMs = clock.nowMs() + lookMs;
      }
      return await this.#open.take();
    } catch (error) {
      if (!isRefusal(error)) throw error;
      warnOfRefusal(error, warn);
      await pause(lookMs);
      return null;
    }
  }

  async #serve(taken: Taken): Promise<void> {
    this.#counts.add(await serveRequest(taken, this.#parts));
    this.#running.delete(taken);
  }

  /** The requests that came through one of BullMQ's workers. */
  #of(worker: RequestWorker): Taken[] {
    return [...this.#running.keys()].filter((taken) => taken.worker === worker);
  }

  /** Keeps what is running this worker's own. @returns what ends it */
  #renewLater(): () => void {
    let stop = () => {};
    let stopped = false;
    const next = () => {
      stop = this.#parts.setAlarm(this.#parts.lockMs / 3, async () => {
        await this.#renew();
        if (!stopped) next();
      });
    };
    next();
    return () => {
      stopped = true;
      stop();
    };
  }

  async #renew(): Promise<void> {
    const workers = new Set([...this.#running.keys()].map(({ worker }) => worker));
    for (const worker of workers) {
      const taken = this.#of(worker);
      const [ids, tokens] = [taken.map(({ job }) => job.id!), taken.map(({ token }) => token)];
      try {
        const gone = await worker.extendJobLocks(ids, tokens, this.#parts.lockMs);
        for (const { job, lost } of taken) if (gone.includes(job.id!)) lost.abort();
      } catch (error) {
        warnOfRefusal(error, this.#parts.warn);
      }
    }
  }

  async #giveBack(): Promise<void> {
    const left = [...this.#running.keys()];
    for (const { lost } of left) lost.abort();
    await Promise.allSettled(left.map(({ job, token }) => job.moveToWait(token)));
  }
}

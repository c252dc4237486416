/** Brings results from the queue to a file as they come. */
import { pause } from "../clock.ts";
import type { Batches, BatchRecord } from "./batches.ts";
import type { BatchResult } from "./result.ts";
import { ResultsDiskError, type ResultsFile } from "./results-node.ts";

const lookMs = 500;
/** Results that are written at once. */
const pageResults = 100;

export interface CollectOptions {
  /** Whether to wait for those that aren't there yet. */
  readonly wait: boolean;
  readonly signal: AbortSignal;
  /** Hears how many of all are in the file. */
  readonly onProgress: (done: number, total: number) => void;
}

/**
 * Collects what is done. A batch that was paused, because there was no room for its results, goes on.
 * @throws ResultsDiskError after it has paused the batch; the signal's reason
 */
export async function collect(
  batches: Batches,
  { id, requests }: BatchRecord,
  file: ResultsFile,
  { wait, signal, onProgress }: CollectOptions,
): Promise<void> {
  const queue = batches.queue(id);
  if (await queue.isPaused()) await queue.resume();
  for (;;) {
    const record = await batches.find(id);
    await collectDone();
    onProgress(file.size, requests);
    const over = !wait || record === null || record.cancelled;
    if (file.size >= requests || over) return;
    await pause(lookMs);
    signal.throwIfAborted();
  }

  async function collectDone(): Promise<void> {
    const ids = await queue.getRanges(["completed"], 0, -1, true);
    const fresh = ids.filter((each) => !file.has(lineOfJob(each)));
    for (let from = 0; from < fresh.length; from += pageResults) {
      signal.throwIfAborted();
      await file.add(await resultsOf(fresh.slice(from, from + pageResults))).catch(pauseBatch);
      onProgress(file.size, requests);
    }
  }

  async function resultsOf(ids: readonly string[]): Promise<BatchResult[]> {
    const jobs = await Promise.all(ids.map((each) => queue.getJob(each)));
    return jobs.flatMap((job) => (job?.returnvalue ? [job.returnvalue] : []));
  }

  async function pauseBatch(error: unknown): Promise<never> {
    if (error instanceof ResultsDiskError) await queue.pause();
    throw error;
  }
}

const lineOfJob = (jobId: string): number => Number(jobId.slice("line-".length));

/** A line of a batch's results, as OpenAI has it, and who made it. */
import type { WorkerIdentity } from "./identity.ts";

export interface BatchResult {
  /** Of the batch and the request's line. */
  readonly id: string;
  readonly custom_id: string;
  /** What the server says, an error among it; null where nothing came to that. */
  readonly response: {
    readonly status_code: number;
    readonly request_id: string;
    readonly body: unknown;
  } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly worker: WorkerIdentity;
}

/** @param line of the request, from 1 */
export const resultId = (batchId: string, line: number): string => `${batchId}_${line}`;

/** The line of a request by its result's id; null where that is another batch's, or no such id. */
export function lineOfResult(id: string, batchId?: string): number | null {
  const [, batch, line] = /^(batch_[0-9a-f]{32})_(\d{1,9})$/.exec(id) ?? [];
  return batch === undefined || (batchId ?? batch) !== batch ? null : Number(line);
}

/** What a request becomes whose workers all died over it. */
export const lostError = (workers: number): NonNullable<BatchResult["error"]> => ({
  code: "worker_lost",
  message: `${workers} workers in turn were lost while they had this request.`,
});

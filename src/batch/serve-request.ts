import { ErrorCode } from "bullmq";
import { pause } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { WorkerIdentity } from "./identity.ts";
import type { Outcome } from "./metrics.ts";
import type { Taken } from "./open-batches.ts";
import { type BatchResult, lostError, resultId } from "./result.ts";

/** After which a result is offered again that the queue had no room for. */
const againMs = 1000;

export interface ServeOptions {
  /** The server's own: a request gives here what it gives over HTTP. */
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly identity: () => WorkerIdentity;
  readonly warn: (message: string) => void;
}

/** Replies to a request, and gives the queue its result, or the request for another try. */
export async function serveRequest(taken: Taken, options: ServeOptions): Promise<Outcome> {
  const { record, job, token } = taken;
  try {
    const result = await resultOf(taken, options);
    const status = result.response?.status_code ?? 0;
    const again = passes(status) && job.attemptsMade + 1 < record.attempts;
    await settle(taken, options.warn, async () => {
      if (again) await job.moveToFailed(new Error(`status ${status}`), token, false);
      else await job.moveToCompleted(result, token, false);
    });
    if (again) return "retried";
    if (result.error) return "lost";
    return status < 400 ? "done" : "refused";
  } catch (error) {
    // Its lock has gone: whoever has it now says what becomes of it.
    options.warn(`${record.id}: ${job.id} is no longer this worker's: ${messageOf(error)}`);
    return "handed_on";
  }
}

async function resultOf(
  { record, job, lost }: Taken,
  { fetch, identity }: ServeOptions,
): Promise<BatchResult> {
  const { customId: custom_id, url, body, line } = job.data;
  const id = resultId(record.id, line);
  if (job.deferredFailure) {
    const error = lostError(record.attempts);
    return { id, custom_id, response: null, error, worker: identity() };
  }
  const init = {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Request-Id": id },
    body: JSON.stringify(body),
    signal: lost.signal,
  };
  const reply = await fetch(new Request(`http://worker${url}`, init));
  const response = { status_code: reply.status, request_id: id, body: await reply.json() };
  lost.signal.throwIfAborted();
  return { id, custom_id, response, error: null, worker: identity() };
}

/** Tries until the queue has taken it, or the request is another's. */
async function settle(
  { lost }: Taken,
  warn: (message: string) => void,
  tell: () => Promise<void>,
): Promise<void> {
  for (;;) {
    try {
      await tell();
      return;
    } catch (error) {
      if (lost.signal.aborted || isAnothers(error)) throw error;
      warn(`The queue takes no result: ${messageOf(error)}`);
      await pause(againMs);
    }
  }
}

/** Whether another try may go better. */
const passes = (status: number): boolean => status === 429 || status >= 500;

/** What BullMQ says of a request that was handed on, done by another worker, or removed. */
const anothers: readonly unknown[] = [
  ErrorCode.JobNotExist,
  ErrorCode.JobLockNotExist,
  ErrorCode.JobLockMismatch,
  ErrorCode.JobNotInState,
];

const isAnothers = (error: unknown): boolean =>
  error instanceof Error && "code" in error && anothers.includes(error.code);

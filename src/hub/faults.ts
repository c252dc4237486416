import { HubError } from "./hub-error.ts";

/** How often the same is asked in a row before it counts as refused. */
const attemptsMax = 5;
const firstWaitMs = 1000;
/** Longer than a hub may ask us to wait: then the user should decide. */
const waitMsMax = 120_000;
/** What has to come for a download to count as going on. */
export const progressBytesMin = 65_536;

/** A fault that may pass: a lost connection, a server that is busy, an answer that doesn't fit. */
export class PassingFault extends Error {
  /** How long the server asks to be left alone; null where it doesn't say. */
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null = null, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

/** Other bytes came than those that were asked for. */
export class RangeFault extends PassingFault {}

/** Time, as downloads need it; tests bring their own. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

/** Counts the faults of one download, and waits longer after each. What makes progress isn't given up. */
export class Faults {
  readonly #what: string;
  readonly #wait: Wait;
  #inRow = 0;
  #furthest = 0;

  /** @param what is asked for, for messages */
  constructor(what: string, wait: Wait) {
    this.#what = what;
    this.#wait = wait;
  }

  /** How many bytes are there. Only more than ever before count as progress. */
  reached(bytes: number): void {
    if (bytes < this.#furthest + progressBytesMin) return;
    this.#furthest = bytes;
    this.#inRow = 0;
  }

  /**
   * Returns when to ask again.
   * @throws the error itself where it won't pass; HubError after too many in a row
   */
  async after(error: unknown, signal: AbortSignal): Promise<void> {
    if (!(error instanceof PassingFault)) throw error;
    this.#inRow++;
    const waitMs = error.retryAfterMs ?? firstWaitMs * 2 ** (this.#inRow - 1);
    if (this.#inRow === attemptsMax || waitMs > waitMsMax) {
      const tries = this.#inRow === 1 ? "" : `, ${this.#inRow} times in a row`;
      const asks = waitMs > waitMsMax ? ` It asks for ${Math.ceil(waitMs / 1000)} s of rest.` : "";
      throw new HubError("hub_failed", `${this.#what}: ${error.message}${tries}.${asks}`, error);
    }
    await this.#wait(waitMs, signal);
  }
}

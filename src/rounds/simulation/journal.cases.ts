import { createHash } from "node:crypto";
import type { Clock } from "../../clock.ts";

/** What can be found wrong with a world. */
export type Check =
  /** A reply's tokens, or the way in which it ended, are not those of the request alone. */
  | "tokens"
  | "fingerprint"
  /** An error that nobody planted. */
  | "error"
  /** A stream that ends never, or more than once. */
  | "ends"
  /** A request that is refused and should not be, or the other way round. */
  | "queue"
  /** What is said to be cached was computed, or the other way round. */
  | "cached rows"
  /** Something known was not used, or the cache is larger than it may be. */
  | "cache"
  /** Rows that were computed more often than needed. */
  | "rows"
  /** Somebody was served before his turn. */
  | "turn"
  /** Somebody waited for too long. */
  | "wait"
  /** Slots, pages or states that nobody gave back. */
  | "leak"
  /** A verb that the backend refuses. */
  | "misuse"
  /** The same seed did not do the same twice. */
  | "replay";

export interface Failure {
  readonly check: Check;
  readonly message: string;
}

/** Everything that happened in a world, in order, and what was wrong with it. */
export class Journal {
  readonly lines: string[] = [];
  readonly failures: Failure[] = [];
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(event: string): void {
    this.lines.push(`${this.#clock.nowMs()} ${event}`);
  }

  fail(check: Check, message: string): void {
    this.note(`FAIL ${check}: ${message}`);
    this.failures.push({ check, message });
  }

  expect(holds: boolean, check: Check, message: () => string): void {
    if (!holds) this.fail(check, message());
  }

  /** SHA-256 of the lines. */
  get hash(): string {
    return createHash("sha256").update(this.lines.join("\n")).digest("hex");
  }
}

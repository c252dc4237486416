import { BackendError, QueueFullError } from "./errors.ts";
import type { TokenId } from "./ids.ts";
import type { RoundLoop } from "./rounds/loop.ts";
import { plainSampling } from "./sampling/params.ts";

/** Passes that may wait for the machine to be idle; each holds a prompt. */
const waitingMost = 8;

/**
 * Computes, in the background, what the next turns of conversations will begin with. Where the machine is
 * never idle the latest few wait for it, and older ones are given up.
 */
export class WarmTurns {
  readonly #loop: RoundLoop;
  /** How to give up each, the oldest first. */
  readonly #waiting = new Set<() => void>();

  constructor(loop: RoundLoop) {
    this.#loop = loop;
  }

  /** @param promptIds at least one */
  add(promptIds: readonly TokenId[]): void {
    const [oldest] = this.#waiting;
    if (oldest && this.#waiting.size >= waitingMost) this.#giveUp(oldest);
    const request = {
      promptIds,
      maxTokens: 0,
      sampling: { ...plainSampling, seed: 0n },
      eosIds: new Set<TokenId>(),
      fingerprint: false,
      draft: true,
      marks: [],
      priority: "background",
    } as const;
    try {
      const cancel = this.#loop.submit(request, {
        prefilled: () => {},
        token: () => true,
        finished: () => this.#waiting.delete(cancel),
      });
      this.#waiting.add(cancel);
    } catch (error) {
      // Where there is no room for it, the next turn takes a little longer.
      if (!(error instanceof QueueFullError || error instanceof BackendError)) throw error;
    }
  }

  #giveUp(cancel: () => void): void {
    this.#waiting.delete(cancel);
    cancel();
  }
}

import type { Clock } from "../../clock.ts";

/** Readings without a rest after which whoever reads is going round in circles. */
const readingsMax = 5_000;

/** Steps after which nothing will ever come to an end. */
const stepsMax = 100_000;

interface Wait {
  readonly atMs: number;
  readonly order: number;
  readonly resolve: () => void;
}

/**
 * A clock that stands still while anything can be done, and then goes on to the next thing that somebody
 * waits for. So the order of events follows from their times alone.
 */
export class VirtualTime implements Clock {
  #nowMs = 0;
  #waits: Wait[] = [];
  #order = 0;
  #readings = 0;
  #steps = 0;

  /** @throws Error where somebody does things for ever that wait for nothing */
  nowMs(): number {
    if (++this.#readings > readingsMax) {
      // Whoever hears of it may end what goes on, and looks at the time once more.
      this.#readings = 0;
      throw new Error("it goes round in circles");
    }
    return this.#nowMs;
  }

  unixSeconds(): number {
    return Math.floor(this.#nowMs / 1000);
  }

  /** Resolves when it is that late; in the order of the calls, where times are the same. */
  until(atMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waits.push({ atMs: Math.max(atMs, this.#nowMs), order: this.#order++, resolve });
    });
  }

  /** @returns false where the promise would never be kept: nothing goes on, or it does for ever */
  async untilSettled(promise: Promise<unknown>): Promise<boolean> {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    promise.then(settle, settle);
    for (;;) {
      await allDone();
      this.#readings = 0;
      if (settled) return true;
      const next = this.#takeNext();
      if (!next || ++this.#steps > stepsMax) return false;
      this.#nowMs = next.atMs;
      next.resolve();
    }
  }

  #takeNext(): Wait | null {
    const [first] = this.#waits;
    if (!first) return null;
    const next = this.#waits.reduce((least, wait) => (comesBefore(wait, least) ? wait : least));
    this.#waits = this.#waits.filter((wait) => wait !== next);
    return next;
  }
}

const comesBefore = (a: Wait, b: Wait): boolean =>
  a.atMs === b.atMs ? a.order < b.order : a.atMs < b.atMs;

/** Lets everything run that waits for nothing. */
const allDone = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

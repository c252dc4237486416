import type { SetAlarm } from "../clock.ts";

/** A comment: clients' parsers pass over it, and proxies see that somebody is there. */
const pingFrame = ": ping\n\n";

/** An alarm for silence: it rings `ms` after it was asked for. */
export class Silence {
  readonly #ms: number;
  readonly #setAlarm: SetAlarm;
  #stop = () => {};

  /** @param ms 0: it never rings */
  constructor(ms: number, setAlarm: SetAlarm) {
    this.#ms = ms;
    this.#setAlarm = setAlarm;
  }

  /**
   * Whether nothing came of `work` for so long.
   * @throws what `work` does
   */
  async during(work: Promise<unknown>): Promise<boolean> {
    if (this.#ms === 0) {
      await work;
      return false;
    }
    const { promise, resolve } = Promise.withResolvers<true>();
    this.#stop = this.#setAlarm(this.#ms, () => resolve(true));
    try {
      return (await Promise.race([work, promise])) === true;
    } finally {
      this.#stop();
    }
  }

  /** It rings no more, whatever is waited for. */
  stop(): void {
    this.#stop();
  }
}

/** The frames of an event stream, and a ping wherever none comes for long. */
export class PingedFrames {
  readonly #frames: AsyncGenerator<string, void>;
  readonly #silence: Silence;
  #pingDue: boolean;
  #next: Promise<IteratorResult<string, void>> | null = null;

  /** @param late whether there was silence before */
  constructor(frames: AsyncGenerator<string, void>, silence: Silence, late: boolean) {
    this.#frames = frames;
    this.#silence = silence;
    this.#pingDue = late;
  }

  /** @returns null behind the last */
  async next(): Promise<string | null> {
    this.#next ??= this.#frames.next();
    const next = this.#next;
    if (this.#pingDue || (await this.#silence.during(next))) {
      this.#pingDue = false;
      return pingFrame;
    }
    this.#next = null;
    const { done, value } = await next;
    return done ? null : value;
  }
}

import type { SetAlarm } from "../clock.ts";
import { PassingFault, progressBytesMin } from "./faults.ts";

/** A connection that brings less than `progressBytesMin` in this time is made anew. */
const stallMs = 20_000;

/** Watches an answer as it comes. Its signal ends it when too little comes. */
export class StallWatch implements Disposable {
  readonly #setAlarm: SetAlarm;
  readonly #controller = new AbortController();
  #bytes = 0;
  #cancel: () => void;

  constructor(setAlarm: SetAlarm) {
    this.#setAlarm = setAlarm;
    this.#cancel = this.#arm();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Passes pieces on, and counts them. */
  async *watched(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      this.#bytes += piece.length;
      yield piece;
    }
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #arm(): () => void {
    return this.#setAlarm(stallMs, () => {
      if (this.#bytes < progressBytesMin) {
        const seconds = stallMs / 1000;
        this.#controller.abort(new PassingFault(`only ${this.#bytes} bytes came in ${seconds} s`));
        return;
      }
      this.#bytes = 0;
      this.#cancel = this.#arm();
    });
  }
}

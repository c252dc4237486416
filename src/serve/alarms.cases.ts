import type { SetAlarm } from "../clock.ts";

/** Alarms of a time that passes when a test says. */
export class Alarms {
  readonly #alarms = new Map<() => void, number>();
  #nowMs = 0;

  readonly set: SetAlarm = (ms, ring) => {
    // Each has an entry of its own, whoever rings.
    const alarm = () => ring();
    this.#alarms.set(alarm, this.#nowMs + ms);
    return () => {
      this.#alarms.delete(alarm);
    };
  };

  /** Alarms that may still ring. */
  get count(): number {
    return this.#alarms.size;
  }

  pass(ms: number): void {
    this.#nowMs += ms;
    for (const [alarm, atMs] of [...this.#alarms]) {
      if (atMs > this.#nowMs) continue;
      this.#alarms.delete(alarm);
      alarm();
    }
  }
}

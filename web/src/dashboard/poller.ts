import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Clock, SetAlarm } from "../../../src/clock.ts";
import { ApiError } from "../api/api-error.ts";
import type { Health, Server } from "../api/server.ts";
import type { Connection } from "../shared/connection.ts";
import { readSamples, type Samples } from "./exposition.ts";
import { History } from "./history.ts";
import type { Reading } from "./readings.ts";

const pollMs = 1000;

export interface PollerParts {
  readonly server: Server;
  readonly connection: Connection;
  readonly clock: Clock;
  readonly setAlarm: SetAlarm;
}

/** Asks the server for its figures, once a second while the page is seen. */
export class Poller {
  readonly #parts: PollerParts;
  readonly #history = new History();
  readonly #readings: Signal<readonly Reading[]> = signal([]);
  readonly #health: Signal<Health | null> = signal(null);
  readonly #problem: Signal<string | null> = signal(null);
  #stopAlarm: () => void = () => {};
  /** Which start it is; what belongs to an earlier one is over. */
  #turn = 0;

  constructor(parts: PollerParts) {
    this.#parts = parts;
  }

  /** The oldest first. */
  get readings(): ReadonlySignal<readonly Reading[]> {
    return this.#readings;
  }

  get health(): ReadonlySignal<Health | null> {
    return this.#health;
  }

  /** Why nothing could be read; null where it could. */
  get problem(): ReadonlySignal<string | null> {
    return this.#problem;
  }

  /** Begins to ask, as if nothing was read before. */
  start(): void {
    this.stop();
    void this.#poll(this.#turn);
  }

  stop(): void {
    this.#turn++;
    this.#stopAlarm();
    this.#history.pause();
  }

  async #poll(turn: number): Promise<void> {
    const { server, clock, setAlarm, connection } = this.#parts;
    try {
      const [samples, health] = await Promise.all([samplesOf(server), server.health()]);
      if (turn !== this.#turn) return;
      this.#history.add({ atMs: clock.nowMs(), samples, health });
      this.#readings.value = this.#history.readings;
      this.#health.value = health;
      this.#problem.value = null;
    } catch (error) {
      if (turn !== this.#turn) return;
      connection.note(error);
      this.#history.pause();
      this.#problem.value = error instanceof Error ? error.message : String(error);
    }
    this.#stopAlarm = setAlarm(pollMs, () => void this.#poll(turn));
  }
}

/** None where the server has no metrics: what /health tells is shown then. */
async function samplesOf(server: Server): Promise<Samples> {
  try {
    return readSamples(await server.metrics());
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return new Map();
    throw error;
  }
}

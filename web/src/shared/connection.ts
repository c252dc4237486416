import { type Signal, signal } from "@preact/signals";
import { type SetAlarm, setAlarm as systemAlarm } from "../../../src/clock.ts";
import { ApiError } from "../api/api-error.ts";
import type { ModelInfo, Server } from "../api/server.ts";
import type { Preferences } from "./preferences.ts";

/** After which a server that didn't answer, or is still loading, is asked again. */
const retryMs = 3000;

/** Whether the server answers, with which model, and what it is missing. */
export class Connection {
  readonly model: Signal<ModelInfo | null> = signal(null);
  /** Why there is no model yet, in a sentence. */
  readonly problem: Signal<string | null> = signal(null);
  readonly wantsKey: Signal<boolean> = signal(false);
  readonly #server: Server;
  readonly #preferences: Preferences;
  readonly #setAlarm: SetAlarm;

  constructor(server: Server, preferences: Preferences, setAlarm: SetAlarm = systemAlarm) {
    this.#server = server;
    this.#preferences = preferences;
    this.#setAlarm = setAlarm;
  }

  /** Asks for the model until there is one, or a key is wanted. */
  async connect(): Promise<void> {
    try {
      const [model] = await this.#server.models();
      this.model.value = model ?? null;
      this.problem.value = null;
      this.wantsKey.value = false;
    } catch (error) {
      this.note(error);
      this.problem.value = error instanceof Error ? error.message : String(error);
      if (!this.wantsKey.value) this.#setAlarm(retryMs, () => void this.connect());
    }
  }

  /** Looks whether what failed failed for want of a key. */
  note(error: unknown): void {
    if (error instanceof ApiError && error.wantsKey) this.wantsKey.value = true;
  }

  get key(): string {
    return this.#preferences.key;
  }

  /** Tries another key. */
  useKey(key: string): void {
    this.#preferences.key = key.trim();
    this.wantsKey.value = false;
    void this.connect();
  }
}

import type { Backend } from "../backend/backend.ts";
import {
  type BackendError,
  BackendLostError,
  InvariantError,
  invariant,
  messageOf,
} from "../errors.ts";

/** How it stands with an engine's backend. */
export interface BackendCondition {
  /** lost: gone, and the next request opens it again where that can be; reopening: that is going on. */
  readonly status: "ok" | "lost" | "reopening";
  /** Why it is gone, or why it could not be opened again; null while it is there. */
  readonly error: BackendError | null;
  /** Whether a request that comes now may expect a reply. */
  readonly serving: boolean;
}

/** A backend that can be lost and opened again; there is one at a time. */
export class LiveBackend implements AsyncDisposable {
  readonly #openAgain: (() => Promise<Backend>) | null;
  #backend: Backend;
  #lost: BackendLostError | null = null;
  /** Why the last attempt to open it again failed. */
  #failure: BackendLostError | null = null;
  #reopening = false;
  #disposed = false;

  /** @param openAgain opens one of the same sizes; null where that can't be */
  constructor(backend: Backend, openAgain: (() => Promise<Backend>) | null) {
    this.#openAgain = openAgain;
    this.#backend = backend;
    this.#watch(backend);
  }

  /** The one that is there, or the last one that was. */
  get current(): Backend {
    return this.#backend;
  }

  /** Why it is gone; null while it is there. */
  get lost(): BackendLostError | null {
    return this.#lost;
  }

  /** Whether it can be opened again. */
  get recoverable(): boolean {
    return this.#openAgain !== null;
  }

  get condition(): BackendCondition {
    if (!this.#lost) return { status: "ok", error: null, serving: true };
    if (this.#reopening) return { status: "reopening", error: this.#lost, serving: false };
    const serving = this.recoverable && !this.#failure;
    return { status: "lost", error: this.#failure ?? this.#lost, serving };
  }

  /** Hears of a loss from a verb that failed, which may come before `Backend.lost`. */
  note(cause: unknown): void {
    if (cause instanceof BackendLostError) this.#lost ??= cause;
  }

  /**
   * Gives the lost one back and opens another.
   * @throws BackendLostError with both reasons; a later call tries again
   */
  async reopen(): Promise<void> {
    const lost = this.#lost;
    invariant(lost !== null && !this.#reopening, "a backend that is there is opened again");
    if (!this.#openAgain) throw lost;
    this.#reopening = true;
    try {
      // Its memory first: there may not be room for two.
      await this.#dispose();
      const backend = await this.#openAgain();
      const { slots, pages, rowsMax } = this.#backend.info;
      const { info } = backend;
      if (info.slots !== slots || info.pages !== pages || info.rowsMax !== rowsMax) {
        await backend[Symbol.asyncDispose]();
        throw new InvariantError("a backend was opened again with other sizes");
      }
      this.#backend = backend;
      this.#disposed = false;
      this.#lost = null;
      this.#failure = null;
      this.#watch(backend);
    } catch (cause) {
      const why = messageOf(cause);
      const message = `${lost.message.replace(/\.?$/, ".")} It could not be opened again: ${why}`;
      this.#failure = new BackendLostError(message, cause);
      throw this.#failure;
    } finally {
      this.#reopening = false;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispose();
  }

  async #dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.#backend[Symbol.asyncDispose]();
  }

  #watch(backend: Backend): void {
    void backend.lost.then((error) => {
      if (backend === this.#backend) this.note(error);
    });
  }
}

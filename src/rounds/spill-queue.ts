import type { Entry } from "../state/cached-prefix.ts";
import type { SpillStore } from "../state/spill-store.ts";
import type { LiveBackend } from "./live-backend.ts";

/** What may wait to be written: evictions make room for streams, which must not wait for a disk. */
const waitingBytesMax = 2 ** 30;

/** Takes evicted states to disk, beside the rounds. */
export class SpillQueue {
  readonly #live: LiveBackend;
  readonly #store: SpillStore;
  #waitingBytes = 0;
  #tail: Promise<void> = Promise.resolve();

  constructor(live: LiveBackend, store: SpillStore) {
    this.#live = live;
    this.#store = store;
  }

  /**
   * Copies an entry out; it is written later. Places that no conversation begins at are not worth it.
   * @param bytes that it takes, about
   * @param patient whether to wait for the disk rather than leave an entry out
   */
  async add(entry: Entry, bytes: number, patient: boolean): Promise<void> {
    const { ids, rows, context, kind, superseded, held, pages } = entry;
    if (superseded || kind === "cut" || this.#live.lost) return;
    if (this.#store.has(entry, context)) return;
    if (patient) await this.#tail;
    // One that is larger than that has its turn while nothing else waits.
    else if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > waitingBytesMax) return;
    const snapshot = await this.#live.current.save(held, pages, rows).catch((cause: unknown) => {
      this.#live.note(cause);
      return null;
    });
    if (!snapshot) return;
    this.#waitingBytes += bytes;
    this.#tail = this.#tail.then(async () => {
      await this.#store.write(ids.slice(0, rows), context, snapshot);
      this.#waitingBytes -= bytes;
    });
  }

  /** Resolves when everything is written. */
  async written(): Promise<void> {
    await this.#tail;
  }
}

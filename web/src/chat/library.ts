import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Conversation } from "../conversation/message.ts";
import type { ConversationStore, Listed } from "../conversation/store.ts";

const noRoom = "This browser has no room for the conversation: it isn't kept.";

/** The conversations that are kept, and the list of them. */
export class Library {
  readonly #store: ConversationStore;
  readonly #list: Signal<readonly Listed[]> = signal([]);
  /** What is wrong with keeping, in a sentence. */
  readonly notice: Signal<string | null> = signal(null);

  constructor(store: ConversationStore) {
    this.#store = store;
  }

  /** The latest first. */
  get list(): ReadonlySignal<readonly Listed[]> {
    return this.#list;
  }

  /** Reads the list anew: other tabs may have changed it. */
  async refresh(): Promise<void> {
    this.#list.value = await this.#store.list();
  }

  async get(id: string): Promise<Conversation | null> {
    return await this.#store.get(id);
  }

  /** Keeps a conversation as it is now. A full disk is told, not thrown. */
  keep(conversation: Conversation): void {
    const { id, title, updatedSeconds } = conversation;
    this.#list.value = [{ id, title, updatedSeconds }, ...this.#without(id)].toSorted(
      (a, b) => b.updatedSeconds - a.updatedSeconds,
    );
    void this.#put(conversation);
  }

  async remove(id: string): Promise<void> {
    this.#list.value = this.#without(id);
    await this.#store.remove(id);
  }

  async #put(conversation: Conversation): Promise<void> {
    try {
      await this.#store.put(conversation);
      if (this.notice.value === noRoom) this.notice.value = null;
    } catch {
      this.notice.value = noRoom;
    }
  }

  #without(id: string): readonly Listed[] {
    return this.#list.value.filter((each) => each.id !== id);
  }
}

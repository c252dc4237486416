import { type DBSchema, type IDBPDatabase, openDB } from "idb";
import type { Conversation } from "./message.ts";

/** What the list of conversations shows of one. */
export interface Listed {
  readonly id: string;
  readonly title: string;
  readonly updatedSeconds: number;
}

/** Where conversations are kept. */
export interface ConversationStore {
  /** The latest first. */
  list(): Promise<readonly Listed[]>;
  get(id: string): Promise<Conversation | null>;
  put(conversation: Conversation): Promise<void>;
  remove(id: string): Promise<void>;
}

const byTime = "by-time";

interface Schema extends DBSchema {
  conversations: {
    key: string;
    value: Conversation;
    // Holds all that the list shows, so that no conversation is read for it.
    indexes: { [byTime]: [number, string] };
  };
}

/** In the browser's database, which takes far more than local storage, and survives it. */
export class BrowserStore implements ConversationStore {
  readonly #database: IDBPDatabase<Schema>;

  private constructor(database: IDBPDatabase<Schema>) {
    this.#database = database;
  }

  /** Null where the browser keeps nothing, as in some private windows. */
  static async open(): Promise<BrowserStore | null> {
    try {
      return new BrowserStore(
        await openDB<Schema>("deltafold", 1, {
          upgrade: (database) => {
            const store = database.createObjectStore("conversations", { keyPath: "id" });
            store.createIndex(byTime, ["updatedSeconds", "title"]);
          },
        }),
      );
    } catch {
      return null;
    }
  }

  async list(): Promise<readonly Listed[]> {
    const listed: Listed[] = [];
    const index = this.#database.transaction("conversations").store.index(byTime);
    let cursor = await index.openKeyCursor(null, "prev");
    while (cursor) {
      const [updatedSeconds, title] = cursor.key;
      listed.push({ id: cursor.primaryKey, title, updatedSeconds });
      cursor = await cursor.continue();
    }
    return listed;
  }

  async get(id: string): Promise<Conversation | null> {
    return (await this.#database.get("conversations", id)) ?? null;
  }

  async put(conversation: Conversation): Promise<void> {
    const transaction = this.#database.transaction("conversations", "readwrite");
    const put = transaction.store.put(conversation);
    // At once: a page that is being left doesn't hear that the first step is done.
    transaction.commit();
    await Promise.all([put, transaction.done]);
  }

  async remove(id: string): Promise<void> {
    await this.#database.delete("conversations", id);
  }
}

/** For as long as the page is open. */
export class MemoryStore implements ConversationStore {
  readonly #conversations = new Map<string, Conversation>();

  async list(): Promise<readonly Listed[]> {
    return [...this.#conversations.values()]
      .toSorted((a, b) => b.updatedSeconds - a.updatedSeconds)
      .map(({ id, title, updatedSeconds }) => ({ id, title, updatedSeconds }));
  }

  async get(id: string): Promise<Conversation | null> {
    return this.#conversations.get(id) ?? null;
  }

  async put(conversation: Conversation): Promise<void> {
    this.#conversations.set(conversation.id, conversation);
  }

  async remove(id: string): Promise<void> {
    this.#conversations.delete(id);
  }
}

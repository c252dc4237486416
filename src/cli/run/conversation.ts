import type { ChatMessage } from "../../engine.ts";
import type { Reply } from "../../stream.ts";

/** What has been said in a chat. */
export class Conversation {
  #system: string | null;
  #turns: readonly ChatMessage[] = [];

  constructor(system: string | null) {
    this.#system = system;
  }

  /** Forgets all turns; the system message stays. */
  reset(): void {
    this.#turns = [];
  }

  /** Starts over under another system message, or none. */
  setSystem(system: string | null): void {
    this.#system = system;
    this.reset();
  }

  /** The messages of a request that says `text`. */
  asked(text: string): readonly ChatMessage[] {
    const system = this.#system === null ? [] : [{ role: "system", content: this.#system }];
    return [...system, ...this.#turns, { role: "user", content: text }];
  }

  /** Takes a turn down. A reply that was stopped counts as far as it came, if anywhere. */
  add(text: string, { content, reasoning }: Reply): void {
    if (content === "" && reasoning === "") return;
    const user = { role: "user", content: text };
    const assistant = { role: "assistant", content, reasoning_content: reasoning };
    this.#turns = [...this.#turns, user, assistant];
  }
}

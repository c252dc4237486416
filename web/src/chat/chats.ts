import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { chatBody } from "../conversation/chat-body.ts";
import type { Conversation, Message, Reply, UserMessage } from "../conversation/message.ts";
import type { Settings } from "../conversation/settings.ts";
import { exportedParts, imported } from "../conversation/transfer.ts";
import { showing, shownMessages, withChanged, withMessage } from "../conversation/tree.ts";
import type { Connection } from "../shared/connection.ts";
import type { Preferences } from "../shared/preferences.ts";
import type { Library } from "./library.ts";
import { newId, newSeed } from "./random.ts";
import { Run, type RunParts } from "./run.ts";

export interface ChatsParts extends RunParts {
  readonly library: Library;
  readonly preferences: Preferences;
  readonly connection: Connection;
}

/** The conversation that is open, and the replies that are being written. */
export class Chats {
  readonly #parts: ChatsParts;
  readonly #open: Signal<Conversation>;
  readonly #runs: Signal<ReadonlyMap<string, Run>> = signal(new Map());
  /** Those whose replies are being written, as they are now: what is kept may be behind. */
  readonly #live = new Map<string, Conversation>();

  constructor(parts: ChatsParts) {
    this.#parts = parts;
    this.#open = signal(this.#blank());
  }

  get library(): Library {
    return this.#parts.library;
  }

  /** A new one isn't kept before it has a message. */
  get open(): ReadonlySignal<Conversation> {
    return this.#open;
  }

  /** By conversation. */
  get runs(): ReadonlySignal<ReadonlyMap<string, Run>> {
    return this.#runs;
  }

  /** Reads what is kept; other tabs may have changed it since. */
  async refresh(): Promise<void> {
    await this.library.refresh();
    const { id, updatedSeconds } = this.#open.value;
    const listed = this.library.list.value.find((each) => each.id === id);
    if (listed && listed.updatedSeconds > updatedSeconds) await this.show(id);
  }

  startNew(): void {
    this.#open.value = this.#blank();
  }

  /** @returns whether there is such a conversation */
  async show(id: string): Promise<boolean> {
    const found = this.#live.get(id) ?? (await this.library.get(id));
    if (found) this.#open.value = found;
    return found !== null;
  }

  /** Adds what the user says to the open conversation, and asks for a reply. */
  send(text: string): void {
    this.#say(this.#open.value.leaf, text);
  }

  /** Says something else in a message's place: a branch beside it. */
  edit(message: UserMessage, text: string): void {
    this.#say(message.parent, text);
  }

  /** Asks for another reply in its place: a branch beside it. */
  regenerate(reply: Reply): void {
    this.#ask({ ...this.#open.value, leaf: reply.parent });
  }

  /** Gives what came of a reply's calls, in their order, and asks for the next reply. */
  answerCalls({ id, toolCalls }: Reply, results: readonly string[]): void {
    let conversation = this.#open.value;
    let parent = id;
    for (const [at, { id: callId }] of toolCalls.entries()) {
      const placed = this.#placed(parent);
      const message: Message = { ...placed, role: "tool", callId, text: results[at] ?? "" };
      conversation = withMessage(conversation, message);
      parent = message.id;
    }
    this.#ask(conversation);
  }

  /** Ends the open conversation's reply where it is. */
  stop(): void {
    this.#runs.value.get(this.#open.value.id)?.stop();
  }

  /** Ends all replies where they are, and keeps them at once: the page is being left. */
  leave(): void {
    for (const [id, run] of this.#runs.value) {
      run.stop();
      this.#keepReply(id, run, run.soFar);
    }
  }

  /** Shows the branch that a message begins. */
  showBranch(id: string): void {
    this.#change(showing(this.#open.value, id));
  }

  /** For the open conversation, and for those that will begin. */
  setSettings(settings: Settings): void {
    this.#parts.preferences.settings = settings;
    this.#change({ ...this.#open.value, settings });
  }

  async rename(id: string, title: string): Promise<void> {
    const conversation = await this.#find(id);
    if (conversation) this.#change({ ...conversation, title });
  }

  async remove(id: string): Promise<void> {
    this.#runs.value.get(id)?.stop();
    this.#ended(id);
    if (this.#open.value.id === id) this.startNew();
    await this.library.remove(id);
  }

  /** Parts of a file with all conversations. */
  async exported(): Promise<string[]> {
    const found = await Promise.all(this.library.list.value.map(({ id }) => this.#find(id)));
    return exportedParts(found.filter((each) => each !== null));
  }

  /**
   * Takes over a file's conversations, but for those of which there is a later version here.
   * @returns how many it took
   * @throws ImportError where the file is none of ours; then nothing is taken
   */
  async import(text: string): Promise<number> {
    let taken = 0;
    for (const conversation of imported(text)) {
      const here = await this.#find(conversation.id);
      if (here && here.updatedSeconds >= conversation.updatedSeconds) continue;
      if (this.#runs.value.has(conversation.id)) continue;
      this.#change(conversation);
      taken++;
    }
    return taken;
  }

  #say(parent: string | null, text: string): void {
    const message: Message = { ...this.#placed(parent), role: "user", text };
    this.#ask(withMessage(this.#open.value, message));
  }

  /** Asks for the reply to the conversation's shown branch, unless one is being written. */
  #ask(conversation: Conversation): void {
    const { id, settings, leaf } = conversation;
    if (this.#runs.value.has(id)) return;
    const seed = settings.seed ?? newSeed();
    const begun: Reply = {
      ...this.#placed(leaf),
      role: "assistant",
      text: "",
      reasoning: "",
      toolCalls: [],
      ending: "stopped",
      error: null,
      figures: { seed },
    };
    const run = new Run(begun, this.#parts);
    this.#runs.value = new Map(this.#runs.value).set(id, run);
    this.#change(withMessage(conversation, begun));
    void this.#follow(id, run, chatBody(shownMessages(conversation), settings, seed));
  }

  async #follow(id: string, run: Run, body: object): Promise<void> {
    const keep = (reply: Reply) => this.#keepReply(id, run, reply);
    const { reply, error } = await run.take(body, keep);
    keep(reply);
    if (this.#runs.value.get(id) === run) this.#ended(id);
    if (error !== null) this.#parts.connection.note(error);
  }

  /** As far as `run` has come with it; unless its conversation was deleted. */
  #keepReply(id: string, run: Run, reply: Reply): void {
    const conversation = this.#live.get(id);
    if (!conversation || this.#runs.value.get(id) !== run) return;
    const updatedSeconds = this.#parts.clock.unixSeconds();
    this.#change({ ...withChanged(conversation, reply), updatedSeconds });
  }

  #ended(id: string): void {
    const runs = new Map(this.#runs.value);
    runs.delete(id);
    this.#runs.value = runs;
    this.#live.delete(id);
  }

  async #find(id: string): Promise<Conversation | null> {
    if (this.#open.value.id === id) return this.#open.value;
    return this.#live.get(id) ?? (await this.library.get(id));
  }

  /** Shows and keeps another version of a conversation; one without a message isn't kept. */
  #change(conversation: Conversation): void {
    const { id, messages } = conversation;
    if (this.#open.value.id === id) this.#open.value = conversation;
    if (this.#runs.value.has(id)) this.#live.set(id, conversation);
    if (messages.length > 0) this.library.keep(conversation);
  }

  #placed(parent: string | null): Pick<Message, "id" | "parent" | "createdSeconds"> {
    return { id: newId(), parent, createdSeconds: this.#parts.clock.unixSeconds() };
  }

  #blank(): Conversation {
    return {
      id: newId(),
      title: "",
      updatedSeconds: this.#parts.clock.unixSeconds(),
      settings: this.#parts.preferences.settings,
      messages: [],
      leaf: null,
    };
  }
}

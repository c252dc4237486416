import type { Clock } from "../../../src/clock.ts";
import { Server } from "../api/server.ts";
import { MemoryStore } from "../conversation/store.ts";
import { Connection } from "../shared/connection.ts";
import { MemoryDrawer } from "../shared/memory-drawer.cases.ts";
import { Preferences } from "../shared/preferences.ts";
import { Chats } from "./chats.ts";
import { Library } from "./library.ts";

/** A request for a reply, which a test answers piece by piece. */
export class Asked {
  readonly body: { messages: unknown[]; seed: number; [field: string]: unknown };
  readonly signal: AbortSignal;
  readonly response: Response;
  #controller!: ReadableStreamDefaultController<Uint8Array>;

  constructor(init: RequestInit) {
    this.body = JSON.parse(String(init.body));
    this.signal = init.signal!;
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => {
        this.#controller = controller;
      },
    });
    this.signal.addEventListener("abort", () => this.#controller.error(this.signal.reason));
    this.response = new Response(body);
  }

  async send(content: string): Promise<void> {
    await this.#frame({ choices: [{ delta: { content } }] });
  }

  async end(finish_reason = "stop"): Promise<void> {
    await this.#frame({ choices: [{ delta: {}, finish_reason }] });
    this.#controller.enqueue(new TextEncoder().encode("data: [DONE]\n\n"));
    this.#controller.close();
    await settled();
  }

  async fail(): Promise<void> {
    this.#controller.error(new TypeError("network error"));
    await settled();
  }

  async #frame(data: object): Promise<void> {
    this.#controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(data)}\n\n`));
    await settled();
  }
}

/** What follows from something has happened, as far as it waits for no time. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Time as a test sets it. */
class TestClock implements Clock {
  ms = 0;
  seconds = 100;

  nowMs(): number {
    return this.ms;
  }

  unixSeconds(): number {
    return this.seconds;
  }
}

/** Conversations over a server that a test plays. */
export class TestChats {
  readonly asked: Asked[] = [];
  readonly store: MemoryStore = new MemoryStore();
  readonly preferences: Preferences = new Preferences(new MemoryDrawer());
  readonly connection: Connection;
  readonly chats: Chats;
  readonly clock: TestClock = new TestClock();
  /** Instead of a reply. */
  refusal: (() => Response) | null = null;
  /** Drawings that wait for their frame. */
  readonly frames: (() => void)[] = [];

  constructor() {
    const server = new Server(
      async (_, init) => {
        if (this.refusal) return this.refusal();
        const asked = new Asked(init);
        this.asked.push(asked);
        return asked.response;
      },
      () => this.preferences.key,
    );
    this.connection = new Connection(server, this.preferences, () => () => {});
    const { preferences, connection, clock } = this;
    const library = new Library(this.store);
    const nextFrame = (draw: () => void) => void this.frames.push(draw);
    this.chats = new Chats({ server, library, preferences, connection, clock, nextFrame });
  }

  get last(): Asked {
    return this.asked.at(-1)!;
  }

  draw(): void {
    for (const frame of this.frames.splice(0)) frame();
  }

  /** Says something, and answers it. */
  async turn(said: string, answered: string): Promise<void> {
    this.chats.send(said);
    await settled();
    await this.last.send(answered);
    await this.last.end();
  }
}

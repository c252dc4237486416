import { type Signal, signal } from "@preact/signals";
import type { Clock } from "../../../src/clock.ts";
import type { Server } from "../api/server.ts";
import type { Reply } from "../conversation/message.ts";
import { ReplyBuilder } from "../conversation/reply-builder.ts";

/** How often a growing reply is given to be kept. */
const keepMs = 1000;

export interface RunParts {
  readonly server: Server;
  readonly clock: Clock;
  /** Calls back when the browser draws next. */
  readonly nextFrame: (draw: () => void) => void;
}

/** A reply that is being written. */
export class Run {
  /** As far as it came; changes once a frame at most. */
  readonly reply: Signal<Reply>;
  /** Tokens a second until now, about; null before there is a rate. */
  readonly tokensPerSecond: Signal<number | null> = signal(null);
  readonly isOver: Signal<boolean> = signal(false);
  readonly #parts: RunParts;
  readonly #builder: ReplyBuilder;
  readonly #abort = new AbortController();
  #firstPieceMs: number | null = null;
  #keptMs: number;
  #drawing = false;

  constructor(begun: Reply, parts: RunParts) {
    this.#parts = parts;
    this.#builder = new ReplyBuilder(begun);
    this.#keptMs = parts.clock.nowMs();
    this.reply = signal(this.#builder.reply);
  }

  /** With what isn't drawn yet. */
  get soFar(): Reply {
    return this.#builder.reply;
  }

  /** Ends the request; the server frees its slot. */
  stop(): void {
    this.#abort.abort();
  }

  /**
   * Asks for the reply, and takes it to its end.
   * @param keep is given it now and then, in case the page is left
   * @returns it and what it failed with, if it did
   */
  async take(
    body: object,
    keep: (reply: Reply) => void,
  ): Promise<{ readonly reply: Reply; readonly error: unknown }> {
    const { server, clock } = this.#parts;
    let failed: unknown = null;
    try {
      for await (const chunk of server.chat(body, this.#abort.signal)) {
        this.#builder.push(chunk);
        const now = clock.nowMs();
        if (this.#builder.pieces > 0) this.#firstPieceMs ??= now;
        this.#draw();
        if (now - this.#keptMs < keepMs) continue;
        this.#keptMs = now;
        keep(this.#builder.reply);
      }
    } catch (error) {
      if (!this.#abort.signal.aborted) {
        failed = error;
        this.#builder.fail(error instanceof Error ? error.message : String(error));
      }
    }
    this.reply.value = this.#builder.reply;
    this.isOver.value = true;
    return { reply: this.#builder.reply, error: failed };
  }

  #draw(): void {
    if (this.#drawing) return;
    this.#drawing = true;
    this.#parts.nextFrame(() => {
      this.#drawing = false;
      this.reply.value = this.#builder.reply;
      this.tokensPerSecond.value = this.#rate();
    });
  }

  #rate(): number | null {
    if (this.#firstPieceMs === null || this.#builder.pieces < 2) return null;
    const seconds = (this.#parts.clock.nowMs() - this.#firstPieceMs) / 1000;
    return seconds > 0 ? (this.#builder.pieces - 1) / seconds : null;
  }
}

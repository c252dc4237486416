import type { GateLoop, Reply, Served, Turn } from "./gate-loop.ts";
import type { StreamsCoverage } from "./streams-coverage.ts";
import type { Seen } from "./streams-joins.ts";
import type { CellWatch } from "./streams-watch.ts";

/** A stream of a cell. */
export interface Guest {
  readonly turn: Turn;
  /** At which token it is cancelled, 0: before it has any; null: it isn't. */
  readonly cancelAt: number | null;
  joins(seen: Seen): boolean;
}

/** Streams that come and go while others are served. */
export class Company {
  readonly #guests: readonly Guest[];
  readonly #loop: GateLoop;
  readonly #watch: CellWatch;
  readonly #coverage: StreamsCoverage;
  readonly #results: readonly PromiseWithResolvers<Served>[];
  readonly #replies: (Reply | null)[];
  readonly #tokens: number[];
  readonly #ended: boolean[];
  /** By stream, how many passes there had been when it came. */
  readonly #cameAt: number[];

  constructor(
    guests: readonly Guest[],
    loop: GateLoop,
    watch: CellWatch,
    coverage: StreamsCoverage,
  ) {
    this.#guests = guests;
    this.#loop = loop;
    this.#watch = watch;
    this.#coverage = coverage;
    this.#results = guests.map(() => Promise.withResolvers<Served>());
    this.#replies = guests.map(() => null);
    this.#tokens = guests.map(() => 0);
    this.#ended = guests.map(() => false);
    this.#cameAt = guests.map(() => 0);
  }

  /** Serves them all, once. */
  async serve(): Promise<readonly Served[]> {
    this.#watch.onPass = () => {
      if (this.#loop.counts.waiting > 0) this.#coverage.add("waited");
      this.#look();
    };
    this.#look();
    return await Promise.all(this.#results.map(({ promise }) => promise));
  }

  /** Lets in whose time has come, and sends away whose time is over. */
  #look(): void {
    const { passes, chunks } = this.#watch;
    const seen = { passes, chunks, tokens: this.#tokens, ended: this.#ended };
    for (const [at, guest] of this.#guests.entries()) {
      const reply = this.#replies[at]!;
      if (!reply) {
        if (this.#isEmpty || guest.joins(seen)) this.#join(at, guest);
        continue;
      }
      const due = guest.cancelAt !== null && this.#tokens[at]! >= guest.cancelAt;
      if (due && passes > this.#cameAt[at]!) reply.cancel();
    }
  }

  /** Whether all who came have left. */
  get #isEmpty(): boolean {
    return this.#replies.every((reply, at) => !reply || this.#ended[at]);
  }

  #join(at: number, { turn }: Guest): void {
    if (this.#watch.amidPrompt) this.#coverage.add("joinedPrompt");
    if (this.#tokens.some((tokens, other) => tokens > 0 && !this.#ended[other])) {
      this.#coverage.add("joinedReply");
    }
    this.#cameAt[at] = this.#watch.passes;
    const { resolve, reject } = this.#results[at]!;
    try {
      const reply = this.#loop.submit(turn, {
        token: (tokens) => {
          this.#tokens[at] = tokens;
          this.#look();
        },
        finished: () => this.#leave(at),
      });
      this.#replies[at] = reply;
      reply.served.then(resolve, reject);
    } catch (cause) {
      // Inside a round nobody else hears of it.
      reject(cause);
    }
  }

  #leave(at: number): void {
    this.#watch.finished();
    this.#ended[at] = true;
    if (!this.#isEmpty) this.#coverage.add("left");
    this.#look();
  }
}

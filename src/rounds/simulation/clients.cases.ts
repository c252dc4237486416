import { type DeltafoldError, QueueFullError, RequestTooLargeError } from "../../errors.ts";
import type { RoundSink } from "../live-stream.ts";
import type { RoundLoop } from "../loop.ts";
import type { Arrival } from "./arrivals.cases.ts";
import type { Journal } from "./journal.cases.ts";
import { describeOutcome } from "./outcome-checks.cases.ts";
import { fits } from "./requests.cases.ts";
import type { Scenario } from "./scenario.cases.ts";
import { Served } from "./served.cases.ts";
import type { TurnChecks } from "./turn-checks.cases.ts";
import type { VirtualTime } from "./virtual-time.cases.ts";

export interface ClientsOptions {
  readonly scenario: Scenario;
  readonly arrivals: readonly Arrival[];
  readonly journal: Journal;
  readonly time: VirtualTime;
  readonly turns: TurnChecks;
  /** Those that were accepted, by their streams' numbers. */
  readonly served: Served[];
}

/** Those who send requests, listen to the replies, and leave. */
export class Clients {
  readonly #options: ClientsOptions;
  readonly #loop: RoundLoop;
  /** Resolves where a request was served or refused. */
  readonly #gone: ReadonlyMap<Arrival, PromiseWithResolvers<void>>;
  readonly #isLost: () => boolean;
  #closing = false;
  #arriving: Arrival | null = null;

  constructor(options: ClientsOptions, loop: RoundLoop, isLost: () => boolean) {
    const { arrivals } = options;
    this.#options = options;
    this.#loop = loop;
    this.#gone = new Map(arrivals.map((each) => [each, Promise.withResolvers<void>()]));
    this.#isLost = isLost;
  }

  /** Whose request is handed over right now. */
  get arriving(): Arrival {
    return this.#arriving!;
  }

  /** Sends every request. Resolves when each was served or refused. */
  async comeAndGo(): Promise<void> {
    await Promise.all(this.#options.arrivals.map((arrival) => this.#come(arrival)));
  }

  /** From now on everybody is sent away. */
  close(): void {
    this.#closing = true;
    for (const served of this.#options.served) served.cancelled ||= !served.over;
  }

  async #come(arrival: Arrival): Promise<void> {
    const { time } = this.#options;
    // One of a life before this is gone long since.
    if (arrival.after) await this.#gone.get(arrival.after)?.promise;
    await time.until(time.nowMs() + arrival.afterMs);
    await this.#submit(arrival)?.ended;
    this.#gone.get(arrival)!.resolve();
  }

  /** @returns null where it was refused */
  #submit(arrival: Arrival): Served | null {
    const { journal, scenario, served, time, turns } = this.#options;
    const { request, leave } = arrival;
    const one = new Served(served.length, arrival);
    const full = request.maxTokens > 0 && this.#isFull(one.background);
    let tellLoop = () => {};
    const cancel = () => {
      if (one.over) return;
      journal.note(`the client of stream ${one.number} leaves while it is ${one.doing}`);
      one.cancelled = true;
      tellLoop();
    };
    this.#arriving = arrival;
    try {
      tellLoop = this.#loop.submit(request, this.#listener(one, cancel));
    } catch (error) {
      this.#refused(arrival, error as DeltafoldError, full);
      return null;
    }
    const accepted = fits(request, scenario) && !full;
    journal.expect(accepted, "queue", () => "a request is queued that should be refused");
    turns.coming(one);
    served.push(one);
    const { promptIds, maxTokens, priority } = request;
    journal.note(`stream ${one.number} comes: ${promptIds.length} + ${maxTokens}, ${priority}`);
    if (leave && "afterMs" in leave) void time.until(time.nowMs() + leave.afterMs).then(cancel);
    else if (leave?.withToken === 0) cancel();
    return one;
  }

  #listener(served: Served, cancel: () => void): RoundSink {
    const { journal } = this.#options;
    const { leave, stopAt } = served.arrival;
    const { number, tokens } = served;
    return {
      prefilled: () => {
        journal.expect(tokens.length === 0, "ends", () => `stream ${number} is prefilled again`);
      },
      token: (id) => {
        tokens.push(id);
        journal.expect(!served.over, "ends", () => `stream ${number} goes on after its end`);
        if (leave && "withToken" in leave && tokens.length === leave.withToken) cancel();
        return tokens.length === stopAt;
      },
      finished: (outcome) => {
        served.outcomes.push(outcome);
        journal.note(describeOutcome(served, outcome));
        served.end();
      },
    };
  }

  /** Whether as many of a priority wait as may, besides those that free slots await. */
  #isFull(background: boolean): boolean {
    const { scenario, served } = this.#options;
    const there = served.filter(({ over }) => !over);
    const free = scenario.device.slots - there.filter(({ hasSlot }) => hasSlot).length;
    const alike = there.filter((each) => {
      const { maxTokens } = each.arrival.request;
      return !each.hasSlot && each.background === background && maxTokens > 0;
    });
    return alike.length - free >= scenario.queueMax;
  }

  #refused({ request }: Arrival, error: DeltafoldError, full: boolean): void {
    const { journal, scenario } = this.#options;
    journal.note(`a request is refused: ${error.code}`);
    const large = !fits(request, scenario) && error instanceof RequestTooLargeError;
    const queued = full && error instanceof QueueFullError;
    const lost = this.#isLost() && error.code === "backend_lost";
    const right = large || queued || lost || this.#closing;
    journal.expect(right, "queue", () => `a request is refused: ${error.message}`);
  }
}

import { featureRowsOf } from "../../model/drafter-shape.ts";
import { type DeviceOptions, rowsMax } from "./device-options.cases.ts";
import type { Journal } from "./journal.cases.ts";
import type { Scenario } from "./scenario.cases.ts";
import type { Served } from "./served.cases.ts";

/** A prompt is passed over by shorter ones so often; then those that waited as long have their turns. */
const passesOverMost = 8;

/** Whose turn it is, and that nobody waits for longer than the schedule allows. */
export class TurnChecks {
  readonly #journal: Journal;
  readonly #served: readonly Served[];
  readonly #passedOverMost: number;
  readonly #roundsBeforeChunkMost: number;
  readonly #device: DeviceOptions;
  readonly #idleMs: () => number;

  /** @param idleMs how long the device has had nothing to do so far */
  constructor(
    journal: Journal,
    served: readonly Served[],
    scenario: Scenario,
    idleMs: () => number,
  ) {
    const { device, chunkRows, decodeShare } = scenario;
    this.#journal = journal;
    this.#device = device;
    this.#idleMs = idleMs;
    this.#served = served;
    this.#passedOverMost = passesOverMost + device.slots;
    // What replies are owed for a chunk, in rounds of one row; before it a page may be copied, and the
    // drafter be given what it has yet to see.
    const chunkMs = 4 * device.passMs + (chunkRows + featureRowsOf(rowsMax)) * device.rowMs;
    const owedMs = (chunkMs * decodeShare) / (1 - decodeShare);
    this.#roundsBeforeChunkMost = 1 + Math.ceil(owedMs / (device.passMs + device.rowMs));
  }

  get #there(): readonly Served[] {
    return this.#served.filter(({ over, cancelled }) => !over && !cancelled);
  }

  /** A stream comes: where nobody is before it, and there is room for all, it is admitted at once. */
  coming(served: Served): void {
    const there = this.#there;
    const { slots, pages } = this.#device;
    const pagesMost = [...there, served].reduce((sum, each) => sum + each.pagesMost, 0);
    const room = there.length < slots && there.every(({ hasSlot }) => hasSlot);
    served.expected = !served.background && room && pagesMost <= pages;
    served.idleMs = this.#idleMs();
  }

  /** It is looked for a state that a stream goes on from, which counts as its turn. */
  beginning(served: Served): void {
    served.passedOver = 0;
  }

  /** Its state was read, and it can be fed from now on. */
  read(served: Served): void {
    served.idleMs = this.#idleMs();
  }

  /** The first to come is admitted first; background streams only where they are among themselves. */
  admitting(served: Served): void {
    const first = this.#there.find((each) => !each.hasSlot && each.comesBefore(served));
    this.#journal.expect(!first, "turn", () => {
      return `stream ${served.number} is admitted before stream ${first!.number}`;
    });
    if (served.background) {
      const other = this.#there.find(({ background }) => !background);
      this.#journal.expect(!other, "turn", () => {
        return `background stream ${served.number} is admitted beside stream ${other!.number}`;
      });
    }
    if (served.expected) this.#notIdle(served);
    served.idleMs = this.#idleMs();
    served.expected = false;
  }

  /** The first never gives way to others of its kind. */
  parking(served: Served): void {
    const other = this.#there.some((each) => each.hasSlot && each.comesBefore(served));
    const yields = served.background && this.#served.some((each) => !each.over && !each.background);
    this.#journal.expect(other || yields, "turn", () => {
      return `stream ${served.number}, the first, gives way`;
    });
  }

  pass(kind: "fill" | "decode", fed: readonly Served[]): void {
    for (const served of this.#there) if (served.fillable || served.decoding) this.#notIdle(served);
    if (kind === "fill") this.#fill(fed[0]);
    else this.#decode(fed);
    if (fed.some(({ background }) => background)) this.#backgroundPass();
  }

  #notIdle(served: Served): void {
    const idleMs = this.#idleMs() - served.idleMs;
    served.idleMs += idleMs;
    this.#journal.expect(idleMs <= 0, "wait", () => {
      return `the device is idle for ${idleMs} ms while stream ${served.number} waits`;
    });
  }

  #fill(fed: Served | undefined): void {
    for (const served of this.#there) {
      served.roundsBeforeChunk = 0;
      served.passedOver = served !== fed && served.fillable ? served.passedOver + 1 : 0;
      this.#journal.expect(served.passedOver <= this.#passedOverMost, "wait", () => {
        return `stream ${served.number} is passed over by ${served.passedOver} chunks`;
      });
    }
  }

  #decode(fed: readonly Served[]): void {
    for (const served of this.#there) {
      served.roundsBeforeChunk = served.fillable ? served.roundsBeforeChunk + 1 : 0;
      this.#journal.expect(served.roundsBeforeChunk <= this.#roundsBeforeChunkMost, "wait", () => {
        return `stream ${served.number} waits ${served.roundsBeforeChunk} rounds for a chunk`;
      });
      // One whose prompt ended beside this round's blocks joins the next.
      const missed = served.decoding && !fed.includes(served);
      served.roundsMissed = missed ? served.roundsMissed + 1 : 0;
      this.#journal.expect(served.roundsMissed <= 1, "wait", () => {
        return `stream ${served.number} decodes and has no part in ${served.roundsMissed} rounds`;
      });
    }
  }

  /** Whoever came during a round waits for its end: a chunk and a pass of windows. */
  #backgroundPass(): void {
    for (const served of this.#there.filter(({ background }) => !background)) {
      served.backgroundPasses++;
      this.#journal.expect(served.backgroundPasses <= 2, "turn", () => {
        return `stream ${served.number} waits for background streams`;
      });
    }
  }
}

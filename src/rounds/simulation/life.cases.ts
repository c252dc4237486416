import type { SpillStore } from "../../state/spill-store.ts";
import { RoundLoop } from "../loop.ts";
import { WildDrafting } from "../wild-drafting.cases.ts";
import type { Arrival } from "./arrivals.cases.ts";
import { Clients } from "./clients.cases.ts";
import { Device } from "./device.cases.ts";
import { pageBytes, shape } from "./device-options.cases.ts";
import type { Journal } from "./journal.cases.ts";
import { KnownStates } from "./known-states.cases.ts";
import { checkOutcome } from "./outcome-checks.cases.ts";
import type { Random } from "./random.cases.ts";
import type { Scenario } from "./scenario.cases.ts";
import type { Served } from "./served.cases.ts";
import { TurnChecks } from "./turn-checks.cases.ts";
import type { VirtualTime } from "./virtual-time.cases.ts";
import { Watch } from "./watch.cases.ts";
import { watchMemory } from "./watched-memory.cases.ts";

export interface LifeOptions {
  readonly scenario: Scenario;
  readonly arrivals: readonly Arrival[];
  readonly journal: Journal;
  readonly time: VirtualTime;
  readonly random: Random;
  readonly spill: SpillStore | null;
}

/** One loop, from its start until it is closed, and everybody who comes to it. */
export class Life {
  readonly #options: LifeOptions;
  readonly #served: Served[] = [];
  readonly #devices: Device[] = [];
  readonly #watch: Watch;
  readonly #loop: RoundLoop;
  readonly #clients: Clients;
  #closed: Promise<void> | null = null;

  constructor(options: LifeOptions) {
    const { scenario, journal, time, spill } = options;
    const { chunkRows, queueMax, decodeShare, cacheBytes, device, openings } = scenario;
    this.#options = options;
    const idleMs = () => (this.#watch.lost ? 0 : this.#devices[0]!.idleMs);
    const turns = new TurnChecks(journal, this.#served, scenario, idleMs);
    const known = new KnownStates(journal, device.drafts);
    const served = this.#served;
    this.#watch = new Watch({ journal, known, turns, served, cacheBytes }, () => this.#loop);
    const left = [...(openings ?? [])];
    this.#loop = new RoundLoop(this.#open(device.lostIn), {
      chunkRows,
      queueMax,
      decodeShare,
      drafting: device.drafts ? () => this.#drafting() : null,
      cache: { bytesMax: cacheBytes, spill },
      openAgain: openings && (() => this.#openAgain(left.shift() ?? "opens")),
      clock: time,
    });
    this.#clients = new Clients({ ...options, turns, served }, this.#loop, () => this.#watch.lost);
  }

  /** Serves everybody and closes, and looks whether all is as it should be. */
  async live(): Promise<void> {
    const { scenario, journal, time } = this.#options;
    const unwatch = watchMemory(this.#watch);
    try {
      const all = this.#clients.comeAndGo();
      const { closesAfterMs } = scenario;
      if (closesAfterMs !== null)
        void time.until(time.nowMs() + closesAfterMs).then(() => this.#close());
      if (!(await time.untilSettled(all))) journal.fail("ends", this.#waiting());
      this.#checkPages();
      if (!(await time.untilSettled(this.#close()))) journal.fail("ends", "it never closes");
    } finally {
      unwatch();
    }
    for (const served of this.#served) checkOutcome(journal, served, scenario, this.#watch.lost);
    this.#checkClosed();
  }

  #close(): Promise<void> {
    this.#clients.close();
    this.#closed ??= this.#loop[Symbol.asyncDispose]().catch((error: unknown) => {
      this.#options.journal.fail("error", `it can't be closed: ${error}`);
    });
    return this.#closed;
  }

  #waiting(): string {
    const left = this.#served.filter(({ over }) => !over).map(({ number }) => number);
    return `streams ${left.join(", ")} don't come to an end`;
  }

  #drafting(): WildDrafting {
    const { request, expected } = this.#clients.arriving;
    const truth = [...request.promptIds, ...expected.ids];
    const below = (bound: number) => this.#options.random.below(bound);
    return new WildDrafting(below, truth, shape.vocabSize);
  }

  #open(lostIn: number): Device {
    const { scenario, time } = this.#options;
    const device = new Device({ ...scenario.device, lostIn }, time, this.#watch);
    void device.lost.then(() => {
      this.#watch.lost = true;
    });
    this.#devices.push(device);
    return device;
  }

  async #openAgain(how: "fails" | "opens"): Promise<Device> {
    const { journal, time } = this.#options;
    journal.note(`the device is opened again: ${how}`);
    await time.until(time.nowMs() + 50);
    if (how === "fails") throw new Error("planted: no device");
    return this.#open(0);
  }

  /** Nobody is there: only the cache has pages. */
  #checkPages(): void {
    const { journal, scenario } = this.#options;
    const { device } = scenario;
    const { slots, pages } = this.#loop.free;
    const { entries, bytes } = this.#loop.cached;
    const cached = (bytes - 4 * entries) / pageBytes;
    journal.expect(slots === device.slots, "leak", () => `${slots} slots are free at the end`);
    journal.expect(pages + cached === device.pages, "leak", () => {
      return `${pages} pages are free, ${cached} cached of ${device.pages}`;
    });
    const { waiting, running } = this.#loop.counts;
    journal.expect(waiting + running === 0, "leak", () => `${waiting + running} are still served`);
  }

  #checkClosed(): void {
    const { journal, scenario } = this.#options;
    const { pages } = this.#loop.free;
    const all = scenario.device.pages;
    journal.expect(pages === all, "leak", () => `${pages} pages of ${all} are free when closed`);
    for (const { openSlots, heldStates } of this.#devices) {
      journal.expect(heldStates.size === 0, "leak", () => `${heldStates.size} states are held`);
      // Slots of a device that is lost went with it.
      const open = this.#watch.lost ? 0 : openSlots.size;
      journal.expect(open === 0, "leak", () => `${open} slots are open when closed`);
    }
  }
}

import { SpillStore } from "../../state/spill-store.ts";
import { type Arrival, randomArrivals } from "./arrivals.cases.ts";
import { Disk } from "./disk.cases.ts";
import { type Failure, Journal } from "./journal.cases.ts";
import { Life } from "./life.cases.ts";
import { Random } from "./random.cases.ts";
import { randomScenario, type Scenario } from "./scenario.cases.ts";
import { VirtualTime } from "./virtual-time.cases.ts";

/** What became of a world. */
export interface Report {
  readonly seed: number;
  readonly failures: readonly Failure[];
  readonly lines: readonly string[];
  readonly hash: string;
}

const identity = { model: "fake", backend: "fake", build: "0", probe: "none" };

/** A world in which everything follows from a seed. */
export class World {
  readonly #seed: number;
  readonly scenario: Scenario;
  readonly #arrivals: readonly Arrival[];

  private constructor(seed: number, scenario: Scenario, arrivals: readonly Arrival[]) {
    this.#seed = seed;
    this.scenario = scenario;
    this.#arrivals = arrivals;
  }

  static async of(seed: number): Promise<World> {
    const random = new Random(seed);
    const scenario = randomScenario(random);
    return new World(seed, scenario, await randomArrivals(random, scenario));
  }

  /** Lets it run, from the same beginning each time. */
  async run(): Promise<Report> {
    const time = new VirtualTime();
    const journal = new Journal(time);
    const random = new Random(~this.#seed);
    const { disk } = this.scenario;
    const files = disk && new Disk(time, random.fork(), disk);
    // A disk outlives the process: half of the requests come to the next.
    const half = files ? Math.ceil(this.#arrivals.length / 2) : this.#arrivals.length;
    for (const arrivals of [this.#arrivals.slice(0, half), this.#arrivals.slice(half)]) {
      if (arrivals.length === 0) continue;
      const opened = files && SpillStore.open(files, identity, { ...disk!, minFreeBytes: 0 });
      if (opened) await time.untilSettled(opened);
      const spill = await opened;
      await new Life({ scenario: this.scenario, arrivals, journal, time, random, spill }).live();
    }
    const { failures, lines, hash } = journal;
    return { seed: this.#seed, failures, lines, hash };
  }
}

/** Lets a seed's world run twice, which must come to the same. @param plant a bug, while it runs */
export async function simulate(seed: number, plant: () => () => void = noBug): Promise<Report> {
  const world = await World.of(seed);
  const undo = plant();
  try {
    const report = await world.run();
    const { hash } = await world.run();
    if (hash === report.hash) return report;
    const failure = { check: "replay", message: "it does something else the second time" } as const;
    return { ...report, failures: [...report.failures, failure] };
  } finally {
    undo();
  }
}

const noBug = () => () => {};

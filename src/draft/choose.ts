import { invariant } from "../errors.ts";
import { windowRowsMax } from "../limits.ts";
import { Acceptance, blockPrior, copyPrior, ofEngine } from "./acceptance.ts";
import type { CostTable } from "./cost-table.ts";
import { LossBudget } from "./loss-budget.ts";
import { Pace } from "./pace.ts";
import type { Worth } from "./proposal.ts";
import { type Option, Trial } from "./trial.ts";
import { Trust } from "./trust.ts";

/** What could fill a stream's next window. */
export interface DraftOffer {
  /** Drafts that copying has; they cost nothing. */
  readonly copied: number;
  /** Drafts that the block drafter would give; 0: there is none. It is paid before they are known. */
  readonly modelled: number;
  /** The most rows that the window may have, the pending token's included; at least 1. */
  readonly room: number;
}

/** Who drafts, and the rows of the window, the pending token's included. */
export interface DraftChoice {
  readonly source: "copy" | "model" | "none";
  readonly rows: number;
}

const plain: DraftChoice = { source: "none", rows: 1 };

/** How drafts have landed in all streams of an engine, and how long rounds took: what a new stream begins with. */
export class DraftHistory {
  readonly copy: Acceptance = new Acceptance(copyPrior, ofEngine);
  readonly model: Acceptance = new Acceptance(blockPrior, ofEngine);
  readonly pace: Pace = new Pace();
}

/**
 * Chooses, round by round, the drafter and the width for one stream: what should bring most tokens in a
 * ms, plain decoding included. Costs and outcomes steer it, so it changes how fast tokens come and never
 * which. A drafter that loses pauses, for longer each time (`Trial`), and all of them together lose no
 * more than the stream's budget (`LossBudget`).
 */
export class DraftChooser {
  readonly #history: DraftHistory;
  readonly #trials: Readonly<Record<"copy" | "model", Trial>>;
  readonly #budget = new LossBudget();
  readonly #trust = new Trust();
  #choice: DraftChoice = plain;
  /** The time of the chosen round, in plain passes; null where costs are unknown. */
  #passes: number | null = null;
  /** The costs of the round at hand, and the ms of drafting it; null where costs are unknown. */
  #costs: CostTable | null = null;
  #askMs = 0;
  /** What the drafter foresaw of a block that is verified; null: nothing. */
  #foreseen: number | null = null;

  constructor(history: DraftHistory = new DraftHistory()) {
    this.#history = history;
    this.#trials = {
      copy: new Trial((depth) => history.copy.chance(depth)),
      model: new Trial((depth) => history.model.chance(depth)),
    };
  }

  /**
   * To be asked once a round, and each answer followed by `observe`.
   * @param costs of the stream's part of the round; null, not known: every draft is tried
   */
  choose(offer: DraftOffer, costs: CostTable | null): DraftChoice {
    const { room } = offer;
    invariant(room >= 1 && room <= windowRowsMax, `room for ${room} rows`);
    const copied = Math.min(offer.copied, room - 1);
    const modelled = Math.min(offer.modelled, room - 1);
    this.#foreseen = null;
    this.#costs = costs;
    this.#askMs = 0;
    if (costs === null) return this.#choose(unmeasured(copied, modelled), null);
    const { passesMost, even } = this.#budget;
    const copy = this.#trials.copy.option(copied, this.#passesOf(0, costs), passesMost, even);
    const askMs = costs.draftMs ?? 0;
    const model = this.#trials.model.option(
      modelled,
      this.#passesOf(askMs, costs),
      passesMost,
      even,
    );
    if (copy && copy.rate >= (model?.rate ?? 0)) return this.#take("copy", copy);
    if (!model) return this.#choose(plain, 1);
    this.#askMs = askMs;
    return this.#take("model", model);
  }

  /**
   * How many drafts of a block are worth their rows, now that the drafter has said how sure it is: what
   * brings most tokens in a ms, with the block paid for. It may be more than was chosen without that.
   */
  readonly worth: Worth = (chances) => {
    if (!this.#costs) return chances.length;
    const passesOf = this.#passesOf(this.#askMs, this.#costs);
    const { passesMost } = this.#budget;
    let [drafts, passes, foreseen] = [0, passesOf(0), 0];
    let sum = 0;
    chances.forEach((chance, at) => {
      sum += chance;
      const time = passesOf(at + 1);
      if (time > passesMost) return;
      const rate = (1 + this.#trust.share * sum) / time;
      if (rate <= (1 + this.#trust.share * foreseen) / passes) return;
      [drafts, passes, foreseen] = [at + 1, time, sum];
    });
    this.#passes = passes;
    this.#foreseen = foreseen;
    return drafts;
  };

  /**
   * What came of the last choice.
   * @param proposed drafts that were verified: fewer than chosen where the drafter had fewer, or none of
   *   a block was worth it
   * @param accepted how many of them were right; of a tree, the depth of the right path
   * @param missed whether a draft was wrong: where a reply ends, the drafts behind are not judged
   * @param ms what the round took; null where it wasn't alone
   */
  observe(proposed: number, accepted: number, missed: boolean, ms: number | null): void {
    const { source } = this.#choice;
    const trial = source === "none" ? null : this.#trials[source];
    if (source !== "none" && trial) {
      const judged = missed ? proposed : accepted;
      for (const acceptance of [trial.acceptance, this.#history[source]]) {
        acceptance.observe(judged, accepted);
      }
      // A block of which nothing was worth its rows was asked for in vain.
      if (proposed === 0) trial.acceptance.observe(1, 0);
    }
    if (this.#foreseen !== null && missed) this.#trust.observe(this.#foreseen, accepted);
    if (this.#costs && ms !== null) this.#time(this.#costs, proposed, ms);
    if (this.#passes === null) return;
    this.#budget.settle(this.#passes, accepted + 1);
    trial?.ended(this.#passes, accepted + 1);
  }

  /** Learns from a round's time, and counts it as what it was. */
  #time(costs: CostTable, proposed: number, ms: number): void {
    const { pace } = this.#history;
    const drafted = this.#askMs > 0 || proposed > 0;
    pace.observe(drafted ? "drafted" : "plain", ms / roundMs(this.#askMs, costs, proposed));
    if (drafted) this.#passes = this.#passesOf(this.#askMs, costs)(proposed);
  }

  /** The time of a round with so many drafts, in plain passes. */
  #passesOf(askMs: number, costs: CostTable): (drafts: number) => number {
    const { scale } = this.#history.pace;
    const plainMs = costs.verifyMs(1);
    return (drafts) => (scale * roundMs(askMs, costs, drafts)) / plainMs;
  }

  #take(source: "copy" | "model", { drafts, passes }: Option): DraftChoice {
    return this.#choose({ source, rows: drafts + 1 }, passes);
  }

  #choose(choice: DraftChoice, passes: number | null): DraftChoice {
    this.#choice = choice;
    this.#passes = passes;
    return choice;
  }
}

/** A round's time as it was measured; of no drafts that nobody was asked for, a plain pass's. */
function roundMs(askMs: number, costs: CostTable, drafts: number): number {
  return askMs + costs.verifyMs(drafts + 1) + (drafts > 0 ? costs.keepMs : 0);
}

/** Full windows, those that cost nothing first. */
function unmeasured(copied: number, modelled: number): DraftChoice {
  if (copied > 0) return { source: "copy", rows: copied + 1 };
  if (modelled > 0) return { source: "model", rows: modelled + 1 };
  return plain;
}

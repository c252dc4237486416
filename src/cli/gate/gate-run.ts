import type { Clock } from "../../clock.ts";
import { isOfShard, type Shard, wholeGate } from "./shard.ts";

/** How a cell went. */
export interface CellResult {
  readonly ok: boolean;
  /** What was compared, and the figure. */
  readonly detail: string;
  /** The figures, where there are several. */
  readonly counts?: Readonly<Record<string, number>>;
}

export interface GateCase extends CellResult {
  readonly name: string;
}

export interface GateReport {
  readonly gate: string;
  readonly ok: boolean;
  readonly passed: number;
  readonly failed: number;
  readonly backend: string;
  readonly cases: readonly GateCase[];
  /** Cells that did not run, and why: out of time without --full, or files that aren't there. */
  readonly not_run: readonly string[];
  readonly seconds: number;
}

/** What a sample may take. A cell that has begun is finished, so some room is left below 3 minutes. */
const sampleMs = 120_000;
/** Why a cell didn't run. */
export const outOfTime = "out of the sample's time; --full runs it";

/** Collects the cells of one gate. */
export class GateRun {
  readonly #cases: GateCase[] = [];
  readonly #notRun: string[] = [];
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #full: boolean;
  readonly #onCase: (result: GateCase) => void;
  readonly #shard: Shard;
  #offered = 0;
  #others = 0;

  constructor(
    clock: Clock,
    full: boolean,
    onCase: (result: GateCase) => void,
    shard: Shard = wholeGate,
  ) {
    this.#clock = clock;
    this.#startMs = clock.nowMs();
    this.#full = full;
    this.#onCase = onCase;
    this.#shard = shard;
  }

  /** Whether other cells of the gate run elsewhere. */
  get isShard(): boolean {
    return this.#shard.count > 1;
  }

  get elapsedMs(): number {
    return this.#clock.nowMs() - this.#startMs;
  }

  /** Cells that ran. */
  get ran(): number {
    return this.#cases.length;
  }

  /** Whether the sample's time is over. */
  get isOver(): boolean {
    return !this.#full && this.elapsedMs > sampleMs;
  }

  /** Whether the sample's time is over. Then `name`, a cell or several, counts as not run. */
  skips(name: string): boolean {
    if (!this.isOver) return false;
    this.skip(name, outOfTime);
    return true;
  }

  /** Runs a cell unless the sample's time is over, or another shard runs it. A throw is a failure. */
  async cell(name: string, run: () => Promise<CellResult>): Promise<void> {
    if (!isOfShard(this.#offered++, this.#shard)) this.#others++;
    else if (!this.skips(name)) await this.always(name, run);
  }

  /** Runs a cell that takes no time, and so whenever it comes. A throw is a failure. */
  async always(name: string, run: () => Promise<CellResult>): Promise<void> {
    let result: GateCase;
    try {
      result = { name, ...(await run()) };
    } catch (error) {
      const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
      result = { name, ok: false, detail };
    }
    this.#cases.push(result);
    this.#onCase(result);
  }

  skip(name: string, why: string): void {
    this.#notRun.push(`${name}: ${why}`);
  }

  /** A gate that ran nothing has not passed. */
  report(gate: string, backend: string): GateReport {
    const passed = this.#cases.filter((result) => result.ok).length;
    const failed = this.#cases.length - passed;
    return {
      gate,
      ok: failed === 0 && passed > 0,
      passed,
      failed,
      backend,
      cases: this.#cases,
      not_run: this.#others > 0 ? [...this.#notRun, this.#otherShards] : this.#notRun,
      seconds: Math.round(this.elapsedMs / 100) / 10,
    };
  }

  get #otherShards(): string {
    const { index, count } = this.#shard;
    return `${this.#others} cells: this is shard ${index + 1} of ${count}`;
  }
}

/** What one more round counts, once there were many. */
const weightLeast = 0.05;
/** How many rounds the measured times count as. */
const priorRounds = 6;
/** A round that was held up by something else says little. */
const ratioMost = 2;

/** A running mean of ratios, the latest counting most; 1 before any. */
class Mean {
  value = 1;
  #count = priorRounds;

  add(ratio: number): void {
    const seen = Math.min(ratioMost, Math.max(1 / ratioMost, ratio));
    this.value += Math.max(weightLeast, 1 / ++this.#count) * (seen - this.value);
  }
}

/**
 * How long rounds really take, over what was measured at load: there is more to a round than its passes,
 * and a machine that has other things to do slows some of them more than others.
 */
export class Pace {
  readonly #plain = new Mean();
  readonly #drafted = new Mean();

  /** What measured times of drafted rounds are to be multiplied by, where those of plain ones are 1. */
  get scale(): number {
    return this.#drafted.value / this.#plain.value;
  }

  /** @param ratio of a round's time over what it was expected to take */
  observe(kind: "plain" | "drafted", ratio: number): void {
    (kind === "plain" ? this.#plain : this.#drafted).add(ratio);
  }
}

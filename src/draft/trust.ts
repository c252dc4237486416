/** Drafts that the drafter's own word counts as, before any was tried. */
const priorDrafts = 6;
/** What a round still counts a round later. */
const memory = 0.95;

/** How far a drafter's own chances can be believed in one stream: what landed over what it foresaw. */
export class Trust {
  #foreseen = priorDrafts;
  #landed = priorDrafts;

  /** What to multiply chances by. */
  get share(): number {
    return Math.min(1, this.#landed / this.#foreseen);
  }

  /** @param foreseen the sum of the chances of what was verified. @param landed how many were right */
  observe(foreseen: number, landed: number): void {
    this.#foreseen = this.#foreseen * memory + foreseen;
    this.#landed = this.#landed * memory + landed;
  }
}

import { invariant } from "../errors.ts";
import { type SlotId, slotId } from "../ids.ts";

/** Which device slots are taken. The lowest free slot is given first. */
export class SlotPool {
  readonly #free: boolean[];

  constructor(slots: number) {
    this.#free = new Array<boolean>(slots).fill(true);
  }

  get freeCount(): number {
    return this.#free.filter(Boolean).length;
  }

  /** Null where every slot is taken. */
  take(): SlotId | null {
    const index = this.#free.indexOf(true);
    if (index < 0) return null;
    this.#free[index] = false;
    return slotId(index);
  }

  give(slot: SlotId): void {
    invariant(this.#free[slot] === false, `slot ${slot} was given back twice`);
    this.#free[slot] = true;
  }
}

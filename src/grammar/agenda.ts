import type { Frame } from "./parse-state.ts";

/** Places in frames that are yet to be looked at. Each is taken once, however often it is added. */
export class Agenda {
  /** What was taken last. */
  place = 0;
  frame: Frame;
  readonly #outermost: Frame;
  readonly #live: readonly boolean[];
  /** By place, in the outermost frame, where most are: the round in which it was added. */
  readonly #rounds: Uint32Array;
  /** By place and frame, in others. */
  readonly #added = new Set<number>();
  readonly #places: number[] = [];
  readonly #frames: Frame[] = [];
  #round = 0;

  /** @param live where nobody is stuck: other places are not looked at */
  constructor(outermost: Frame, live: readonly boolean[]) {
    this.#outermost = outermost;
    this.frame = outermost;
    this.#live = live;
    this.#rounds = new Uint32Array(live.length);
  }

  /** Begins a round, in which nothing was added. */
  clear(): void {
    this.#round++;
    this.#added.clear();
    this.#places.length = 0;
    this.#frames.length = 0;
  }

  add(place: number, frame: Frame): void {
    if (!this.#live[place]) return;
    if (frame === this.#outermost) {
      if (this.#rounds[place] === this.#round) return;
      this.#rounds[place] = this.#round;
    } else {
      const { size } = this.#added;
      if (this.#added.add(frame.id * this.#live.length + place).size === size) return;
    }
    this.#places.push(place);
    this.#frames.push(frame);
  }

  /** Takes one that was added, if any is left. */
  take(): boolean {
    const place = this.#places.pop();
    if (place === undefined) return false;
    this.place = place;
    this.frame = this.#frames.pop()!;
    return true;
  }
}

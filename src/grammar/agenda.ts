import type { Frame } from "./parse-state.ts";

const slotsFirst = 256;

/** Places in frames that are yet to be looked at. Each is taken once, however often it is added. */
export class Agenda {
  /** What was taken last. */
  place = 0;
  frame: Frame;
  readonly #outermost: Frame;
  readonly #live: Uint8Array;
  /** By place, in the outermost frame, where most are: the round in which it was added. */
  readonly #rounds: Uint32Array;
  /** By hash, those that were added in other frames, and the round. At most half of the slots are used. */
  #slotRounds = new Uint32Array(slotsFirst);
  #slotPlaces = new Int32Array(slotsFirst);
  #slotFrames = new Int32Array(slotsFirst);
  #slotsUsed = 0;
  readonly #places: number[] = [];
  readonly #frames: Frame[] = [];
  #round = 0;

  /** @param live 1 where nobody is stuck: other places are not looked at */
  constructor(outermost: Frame, live: Uint8Array) {
    this.#outermost = outermost;
    this.frame = outermost;
    this.#live = live;
    this.#rounds = new Uint32Array(live.length);
  }

  /** Begins a round, in which nothing was added. */
  clear(): void {
    this.#round++;
    this.#slotsUsed = 0;
    this.#places.length = 0;
    this.#frames.length = 0;
  }

  add(place: number, frame: Frame): void {
    if (this.#live[place] !== 1) return;
    if (frame === this.#outermost) {
      if (this.#rounds[place] === this.#round) return;
      this.#rounds[place] = this.#round;
    } else if (!this.#isNew(place, frame.id)) {
      return;
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

  #isNew(place: number, frame: number): boolean {
    const mask = this.#slotRounds.length - 1;
    let slot = hash(place, frame) & mask;
    while (this.#slotRounds[slot] === this.#round) {
      if (this.#slotPlaces[slot] === place && this.#slotFrames[slot] === frame) return false;
      slot = (slot + 1) & mask;
    }
    this.#slotRounds[slot] = this.#round;
    this.#slotPlaces[slot] = place;
    this.#slotFrames[slot] = frame;
    if (2 * ++this.#slotsUsed > mask) this.#grow();
    return true;
  }

  #grow(): void {
    const [rounds, places, frames] = [this.#slotRounds, this.#slotPlaces, this.#slotFrames];
    this.#slotRounds = new Uint32Array(2 * rounds.length);
    this.#slotPlaces = new Int32Array(2 * rounds.length);
    this.#slotFrames = new Int32Array(2 * rounds.length);
    this.#slotsUsed = 0;
    for (let slot = 0; slot < rounds.length; slot++) {
      if (rounds[slot] === this.#round) this.#isNew(places[slot]!, frames[slot]!);
    }
  }
}

function hash(place: number, frame: number): number {
  const mixed = Math.imul(place ^ Math.imul(frame, 0x9e3779b1), 0x85ebca6b);
  return mixed ^ (mixed >>> 15);
}

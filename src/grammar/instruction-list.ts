import type { Instructions } from "./program.ts";

const capacityFirst = 4096;

/** Instructions as they are written: first the targets of one, then what it does. */
export class InstructionList {
  #ops = new Uint8Array(capacityFirst);
  #starts = new Int32Array(capacityFirst + 1);
  #targets = new Int32Array(capacityFirst);
  #firsts = new Uint8Array(capacityFirst);
  #lasts = new Uint8Array(capacityFirst);
  #length = 0;
  #targetCount = 0;
  /** By hash, the shared ones; 0 is none. At most half full. */
  #slots = new Int32Array(2 * capacityFirst);

  get length(): number {
    return this.#length;
  }

  opAt(place: number): number {
    return this.#ops[place]!;
  }

  target(place: number, first = 0, last = 0): void {
    if (this.#targetCount === this.#targets.length) this.#growTargets();
    this.#targets[this.#targetCount] = place;
    this.#firsts[this.#targetCount] = first;
    this.#lasts[this.#targetCount] = last;
    this.#targetCount++;
  }

  /** Ends an instruction that is like no other. Returns its place. */
  add(op: number): number {
    if (this.#length === this.#ops.length) this.#grow();
    this.#ops[this.#length] = op;
    this.#starts[this.#length + 1] = this.#targetCount;
    return this.#length++;
  }

  /** Ends an instruction. Returns the place of the first that was the same. */
  share(op: number): number {
    const place = this.add(op);
    const slot = this.#slotOf(place);
    const known = this.#slots[slot]!;
    if (known === 0) {
      this.#slots[slot] = place;
      return place;
    }
    this.#length--;
    this.#targetCount = this.#starts[place]!;
    return known;
  }

  /** Gives an instruction another target. */
  setTarget(place: number, index: number, target: number): void {
    this.#targets[this.#starts[place]! + index] = target;
  }

  done(): Instructions {
    return {
      ops: this.#ops.slice(0, this.#length),
      starts: this.#starts.slice(0, this.#length + 1),
      targets: this.#targets.slice(0, this.#targetCount),
      firsts: this.#firsts.slice(0, this.#targetCount),
      lasts: this.#lasts.slice(0, this.#targetCount),
    };
  }

  /** Where an instruction is among the shared ones, or should be. */
  #slotOf(place: number): number {
    const mask = this.#slots.length - 1;
    let slot = this.#hash(place) & mask;
    while (this.#slots[slot] !== 0 && !this.#same(this.#slots[slot]!, place)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #hash(place: number): number {
    let hash = this.#ops[place]!;
    for (let at = this.#starts[place]!; at < this.#starts[place + 1]!; at++) {
      const range = (this.#firsts[at]! << 8) | this.#lasts[at]!;
      hash = Math.imul(hash ^ range, 0x9e3779b1);
      hash = Math.imul(hash ^ (hash >>> 15) ^ this.#targets[at]!, 0x85ebca6b);
    }
    return hash ^ (hash >>> 13);
  }

  #same(place: number, other: number): boolean {
    const first = this.#starts[place]!;
    const shift = this.#starts[other]! - first;
    const end = this.#starts[place + 1]!;
    if (this.#ops[place] !== this.#ops[other] || end + shift !== this.#starts[other + 1]) {
      return false;
    }
    for (let at = first; at < end; at++) {
      if (this.#targets[at] !== this.#targets[at + shift]) return false;
      if (this.#firsts[at] !== this.#firsts[at + shift]) return false;
      if (this.#lasts[at] !== this.#lasts[at + shift]) return false;
    }
    return true;
  }

  #grow(): void {
    const capacity = 2 * this.#ops.length;
    this.#ops = grown(this.#ops, new Uint8Array(capacity));
    this.#starts = grown(this.#starts, new Int32Array(capacity + 1));
    const shared = this.#slots.filter((place) => place !== 0);
    this.#slots = new Int32Array(2 * capacity);
    const mask = this.#slots.length - 1;
    for (const place of shared) {
      let slot = this.#hash(place) & mask;
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
      this.#slots[slot] = place;
    }
  }

  #growTargets(): void {
    const capacity = 2 * this.#targets.length;
    this.#targets = grown(this.#targets, new Int32Array(capacity));
    this.#firsts = grown(this.#firsts, new Uint8Array(capacity));
    this.#lasts = grown(this.#lasts, new Uint8Array(capacity));
  }
}

function grown<T extends Uint8Array | Int32Array>(list: T, larger: T): T {
  larger.set(list);
  return larger;
}

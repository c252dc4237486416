import { invariant, MemoryError, type MemorySentence } from "../errors.ts";
import { derivedSizes, type ModelShape } from "../model/shape.ts";
import type { HeldState, Snapshot } from "./backend.ts";

/** A slot's state and history, laid out as in a snapshot. */
export type StateArrays = Pick<Snapshot, "state" | "history">;

/** What a snapshot has besides keys and values. */
export type SlotArrays = Pick<Snapshot, "state" | "history" | "logits">;

const sentence: MemorySentence = (needed, free) =>
  `A held state takes ${needed}, ${free} are free.`;

/** Copies a held state out. */
export const copyHeld = ({ state, history }: StateArrays): SlotArrays => ({
  state: state.slice(),
  history: history.slice(),
  logits: null,
});

/** Bytes of a model's state and history. */
export function heldBytes(shape: ModelShape): number {
  const { linearLayers, stateFloats, historyFloats } = derivedSizes(shape);
  return 4 * linearLayers * (stateFloats + historyFloats);
}

/**
 * What a backend set aside in this machine's memory and nobody disposed of yet. What was disposed of is
 * written over by the next: a server sets states aside all the time.
 */
export class HeldStates<T> {
  readonly #bytes: number;
  readonly #contents = new Map<HeldState, T>();
  readonly #idle: T[] = [];

  /** @param bytes what each of them takes */
  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  get size(): number {
    return this.#contents.size;
  }

  /**
   * Sets aside what `copy` gives. It may write over what it is given: a content that was disposed of. What
   * still reads that one must have come before.
   * @throws MemoryError where there is no room for it
   */
  add(copy: (into: T | undefined) => T): HeldState {
    const content = this.#roomFor(copy);
    const held: HeldState = {
      bytes: this.#bytes,
      [Symbol.dispose]: () => {
        if (this.#contents.delete(held)) this.#idle.push(content);
      },
    };
    this.#contents.set(held, content);
    return held;
  }

  /** @throws InvariantError where it was disposed of, or is another backend's */
  contentOf(held: HeldState): T {
    const content = this.#contents.get(held);
    invariant(content !== undefined, "a held state that was disposed of, or is another backend's");
    return content;
  }

  #roomFor(copy: (into: T | undefined) => T): T {
    try {
      return copy(this.#idle.pop());
    } catch (error) {
      // An array that can't be had.
      if (!(error instanceof RangeError)) throw error;
      throw new MemoryError(this.#bytes, 0, "JavaScript refused to reserve that much.", sentence);
    }
  }
}

/** Numbers that follow from a seed alone. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed, 2654435761) ^ 0x2545f491;
    // Seeds that are neighbours begin alike.
    for (let round = 0; round < 4; round++) this.#next();
  }

  /** A whole number from 0 to below `bound`. */
  below(bound: number): number {
    return Math.floor((this.#next() / 2 ** 32) * bound);
  }

  /** A whole number from `first` to `last`. */
  between(first: number, last: number): number {
    return first + this.below(last - first + 1);
  }

  /** True once in so many times. */
  once(times: number): boolean {
    return this.below(times) === 0;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  list<T>(length: number, item: () => T): T[] {
    return Array.from({ length }, item);
  }

  /** One whose numbers don't depend on how many are taken from this one later. */
  fork(): Random {
    return new Random(this.#next());
  }

  /** 32 bits of a Weyl sequence, mixed. */
  #next(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let word = this.#state;
    word = Math.imul(word ^ (word >>> 16), 0x21f0aaad);
    word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
    return (word ^ (word >>> 15)) >>> 0;
  }
}

import { invariant } from "../errors.ts";
import type { Position, TokenId } from "../ids.ts";

/**
 * Noise that depends on (seed, position, token id) and on nothing else, so that a token drawn with
 * drafts, in company or after a resume is the one drawn alone (docs/exactness.md, "Draws").
 *
 * 64-bit integers are pairs of 32-bit limbs, [low, high] in a Uint32Array, whose stores wrap as the
 * algorithm wants: a whole vocabulary is keyed at each draw, and BigInt is fifty times slower.
 */
type Limbs = Uint32Array;

/** x · multiplier mod 2^64, in place, by 16-bit halves where a product would pass 2^53. */
function multiply(x: Limbs, multiplierLow: number, multiplierHigh: number): void {
  const low = x[0]!;
  const high = x[1]!;
  const a = low & 0xffff;
  const b = low >>> 16;
  const c = multiplierLow & 0xffff;
  const d = multiplierLow >>> 16;
  const bc = b * c;
  const ad = a * d;
  const middle = ((a * c) >>> 16) + (bc & 0xffff) + (ad & 0xffff);
  const carried = b * d + (bc >>> 16) + (ad >>> 16) + (middle >>> 16);
  x[0] = Math.imul(low, multiplierLow);
  x[1] = carried + Math.imul(high, multiplierLow) + Math.imul(low, multiplierHigh);
}

/** x ^= x >> bits, in place, for 0 < bits < 32. */
function xorShift(x: Limbs, bits: number): void {
  const low = x[0]!;
  const high = x[1]!;
  x[0] = low ^ ((low >>> bits) | (high << (32 - bits)));
  x[1] = high ^ (high >>> bits);
}

/** splitmix64's finaliser, in place. `x` is [low limb, high limb]. */
export function mix(x: Uint32Array): void {
  xorShift(x, 30);
  multiply(x, 0x1ce4e5b9, 0xbf58476d);
  xorShift(x, 27);
  multiply(x, 0x133111eb, 0x94d049bb);
  xorShift(x, 31);
}

/** The noise of one row: of every token id at one position under one seed. */
export class KeyedNoise {
  /** mix(mix(seed + golden) ^ position · odd constant): what the ids of the row share. */
  readonly #rowLow: number;
  readonly #rowHigh: number;
  readonly #key: Limbs = new Uint32Array(2);

  /** @param seed 64 bits, unsigned. @param position the absolute index the token will stand at. */
  constructor(seed: bigint, position: Position) {
    invariant(Number.isSafeInteger(position) && position >= 0, `position ${position}`);
    const start = BigInt.asUintN(64, seed + 0x9e3779b97f4a7c15n);
    const row = new Uint32Array([Number(start & 0xffffffffn), Number(start >> 32n)]);
    mix(row);
    const step = new Uint32Array([position >>> 0, Math.floor(position / 2 ** 32)]);
    multiply(step, 0xd192ed03, 0xd1b54a32);
    row[0] = row[0]! ^ step[0]!;
    row[1] = row[1]! ^ step[1]!;
    mix(row);
    this.#rowLow = row[0]!;
    this.#rowHigh = row[1]!;
  }

  /** A double in (0, 1]: the key's upper 53 bits, centred. */
  uniform(id: TokenId): number {
    const key = this.#key;
    key[0] = this.#rowLow ^ id;
    key[1] = this.#rowHigh;
    mix(key);
    return (key[1]! * 2 ** 21 + (key[0]! >>> 11)) * 2 ** -53 + 2 ** -54;
  }

  /** Standard Gumbel noise, −ln(−ln u) in f64; +Infinity where u rounds to 1 (1 key in 2^53). */
  gumbel(id: TokenId): number {
    return -Math.log(-Math.log(this.uniform(id)));
  }
}

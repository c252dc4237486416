import { invariant, NonFiniteLogitsError } from "../errors.ts";
import type { Position } from "../ids.ts";

/** Tokens a draw may choose from, by (logit descending, id ascending). The arrays are parallel. */
export interface Candidates {
  readonly ids: Int32Array;
  readonly logits: Float32Array;
}

/** Up to here a sorted list is kept while walking the row; beyond, the whole row is sorted. */
export const selectMax = 64;
/** An order key is the logit's 32 bits over 21 bits of id: 53 bits, exact in a double. */
const idBits = 21;

/**
 * The first `count` candidates of a row (0: all), the lowest id first among equal logits.
 * @param position where the drawn token will stand; only for the error.
 * @throws NonFiniteLogitsError when any logit is NaN or infinite: no row is ever masked, so such a
 *   value means broken weights or a broken kernel.
 */
export function orderCandidates(
  logits: Float32Array,
  count: number,
  position: Position,
): Candidates {
  invariant(logits.length > 0 && logits.length <= 2 ** idBits, `a row of ${logits.length} logits`);
  const wanted = count === 0 ? logits.length : Math.min(count, logits.length);
  const first = wanted <= selectMax ? selectFirst(logits, wanted) : sortFirst(logits, wanted);
  if (!first) throw new NonFiniteLogitsError(position);
  return first;
}

/**
 * Insertion into a short sorted list; ids ascend, so an equal logit goes after its like. Looks at four
 * logits at a time, most of which are too small. Null where one isn't finite: zero times it isn't zero.
 */
function selectFirst(row: Float32Array, wanted: number): Candidates | null {
  const ids = new Int32Array(wanted);
  const logits = new Float32Array(wanted).fill(Number.NEGATIVE_INFINITY);
  let least = Number.NEGATIVE_INFINITY;
  // Each waits for its last, so that one would take four times as long.
  let zeroA = 0;
  let zeroB = 0;
  let zeroC = 0;
  let zeroD = 0;
  const whole = row.length & ~3;
  for (let id = 0; id < whole; id += 4) {
    const a = row[id]!;
    const b = row[id + 1]!;
    const c = row[id + 2]!;
    const d = row[id + 3]!;
    zeroA += a * 0;
    zeroB += b * 0;
    zeroC += c * 0;
    zeroD += d * 0;
    if (a > least || b > least || c > least || d > least) {
      for (let at = id; at < id + 4; at++) least = insert(ids, logits, at, row[at]!);
    }
  }
  for (let id = whole; id < row.length; id++) {
    zeroA += row[id]! * 0;
    least = insert(ids, logits, id, row[id]!);
  }
  return zeroA + zeroB + zeroC + zeroD === 0 ? { ids, logits } : null;
}

/** Returns the list's last logit, which the next one must exceed. */
function insert(ids: Int32Array, logits: Float32Array, id: number, logit: number): number {
  const last = logits.length - 1;
  if (logit > logits[last]!) {
    let at = last;
    while (at > 0 && logits[at - 1]! < logit) {
      logits[at] = logits[at - 1]!;
      ids[at] = ids[at - 1]!;
      at--;
    }
    logits[at] = logit;
    ids[at] = id;
  }
  return logits[last]!;
}

/** Sorts numbers that hold logit and id together, because a typed array sorts natively. Null as above. */
function sortFirst(row: Float32Array, wanted: number): Candidates | null {
  if (!row.every(Number.isFinite)) return null;
  const bits = new Uint32Array(row.length);
  // Adding 0 turns -0 into +0, which compares equal and so must order by id.
  new Float32Array(bits.buffer).set(row.map((logit) => logit + 0));
  const keys = new Float64Array(row.length);
  for (let id = 0; id < row.length; id++) {
    const word = bits[id]!;
    // Descending: positive floats have growing bits and are inverted, negative ones already fall.
    const falling = word >>> 31 === 0 ? 0x7fffffff - word : word;
    keys[id] = falling * 2 ** idBits + id;
  }
  keys.sort();
  const ids = new Int32Array(wanted);
  const logits = new Float32Array(wanted);
  for (let at = 0; at < wanted; at++) {
    const id = keys[at]! % 2 ** idBits;
    ids[at] = id;
    logits[at] = row[id]!;
  }
  return { ids, logits };
}

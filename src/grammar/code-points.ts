/** Sets of code points, and their UTF-8. */

/** Code points from the first to the last. */
export type CodeRange = readonly [first: number, last: number];
/** A set: ascending ranges that neither overlap nor touch, without surrogates, which UTF-8 lacks. */
export type CodeSet = readonly CodeRange[];
/** Bytes from the first to the last. */
export type ByteRange = readonly [first: number, last: number];

const lastCode = 0x10ffff;

/** Everything that is in one of these ranges. */
export function codeSet(ranges: readonly CodeRange[]): CodeSet {
  const pieces = ranges.flatMap(([first, last]): CodeRange[] => [
    [first, Math.min(last, 0xd7ff)],
    [Math.max(first, 0xe000), last],
  ]);
  const sorted = pieces.filter(([first, last]) => first <= last).sort((a, b) => a[0] - b[0]);
  const merged: [number, number][] = [];
  for (const [first, last] of sorted) {
    const before = merged.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

/** The characters of a text. */
export const codesOf = (text: string): CodeSet =>
  codeSet(Array.from(text, (letter) => [letter.codePointAt(0)!, letter.codePointAt(0)!]));

/** All that isn't in a set. */
export function complement(set: CodeSet): CodeSet {
  const gaps: CodeRange[] = [];
  let next = 0;
  for (const [first, last] of set) {
    gaps.push([next, first - 1]);
    next = last + 1;
  }
  return codeSet([...gaps, [next, lastCode]]);
}

/** What is in both. */
export function common(set: CodeSet, other: CodeSet): CodeSet {
  const both: CodeRange[] = [];
  for (let at = 0, otherAt = 0; at < set.length && otherAt < other.length; ) {
    const [first, last] = set[at]!;
    const [otherFirst, otherLast] = other[otherAt]!;
    const [from, to] = [Math.max(first, otherFirst), Math.min(last, otherLast)];
    if (from <= to) both.push([from, to]);
    if (last < otherLast) at++;
    else otherAt++;
  }
  return both;
}

/** What is in a set and not in the other. */
export const without = (set: CodeSet, taken: CodeSet): CodeSet => common(set, complement(taken));

/**
 * A set's UTF-8, as sequences of byte ranges: one range a byte, each combination a character of the
 * set. Of two sequences, ranges at the same place behind the same bytes are equal or disjoint.
 */
export function utf8Of(set: CodeSet): ByteRange[][] {
  const found: ByteRange[][] = [];
  for (const [first, last] of set) {
    for (const [trail, end] of lengthEnds.entries()) {
      const start = trail === 0 ? 0 : lengthEnds[trail - 1]! + 1;
      if (first <= end && last >= start) {
        addSequences(Math.max(first, start), Math.min(last, end), trail, found);
      }
    }
  }
  return found;
}

/** The last codes that take one byte, two, three and four. */
const lengthEnds: readonly number[] = [0x7f, 0x7ff, 0xffff, lastCode];
/** What first bytes are marked with, by the bytes behind them. */
const leadMarks: readonly number[] = [0, 0xc0, 0xe0, 0xf0];

/** @param trail bytes behind the first, the same for all characters of the range */
function addSequences(first: number, last: number, trail: number, found: ByteRange[][]): void {
  for (let bytes = 1; bytes <= trail; bytes++) {
    const low = 2 ** (6 * bytes) - 1;
    if ((first | low) === (last | low)) continue;
    const [wholeFirst, wholeLast] = [(first & low) === 0, (last & low) === low];
    if (wholeFirst && wholeLast) continue;
    const cut = wholeFirst ? last - (last & low) : (first | low) + 1;
    addSequences(first, cut - 1, trail, found);
    addSequences(cut, last, trail, found);
    return;
  }
  found.push(
    Array.from({ length: trail + 1 }, (_, index): ByteRange => {
      const shift = 6 * (trail - index);
      const byte = (code: number) =>
        index === 0 ? leadMarks[trail]! | (code >> shift) : 0x80 | ((code >> shift) & 0x3f);
      return [byte(first), byte(last)];
    }),
  );
}

/** Bytes that begin characters or go on in them, and what stands behind; nothing where they end. */
export interface ByteBranch {
  readonly first: number;
  readonly last: number;
  readonly behind: readonly ByteBranch[];
}

/** A set's UTF-8 as a tree. */
export const utf8Branches = (set: CodeSet): ByteBranch[] => branchesOf(utf8Of(set), 0);

/** @param sequences that are equal before `depth` */
function branchesOf(sequences: readonly ByteRange[][], depth: number): ByteBranch[] {
  const branches: ByteBranch[] = [];
  for (let start = 0; start < sequences.length; ) {
    const [first, last] = sequences[start]![depth]!;
    let end = start + 1;
    while (end < sequences.length && sequences[end]![depth]![0] === first) end++;
    const some = sequences.slice(start, end).filter(({ length }) => length > depth + 1);
    branches.push({ first, last, behind: branchesOf(some, depth + 1) });
    start = end;
  }
  return branches;
}

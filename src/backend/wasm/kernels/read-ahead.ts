// Asks for weights before they are needed. Between two lines of weights there is so much to compute that a core
// has few reads under way, and waits for most of them; a burst of reads waits once.
import { READ_AHEAD } from "../layout";

/** Keeps the reads from being left out. */
let seen: i32 = 0;

/**
 * Called before `bytes` at `at` are read, on a walk in steps of as many. Where they are the first of a run of
 * READ_AHEAD bytes, reads from each line of the next run, which lies within the memory (fit.ts).
 */
@inline
export function readAhead(at: usize, bytes: usize): void {
  if ((at & (READ_AHEAD - 1)) >= bytes) return;
  const end = (at & ~(READ_AHEAD - 1)) + 2 * READ_AHEAD;
  for (let line = end - READ_AHEAD; line < end; line += 256) {
    seen |= load<i32>(line) | load<i32>(line, 64) | load<i32>(line, 128) | load<i32>(line, 192);
  }
}

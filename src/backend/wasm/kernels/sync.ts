// How threads share a pass. Each step is cut into units, which threads claim one by one; a step is over
// when its units are done, whoever did them. Which thread computes a unit never changes a bit of it.
//
// Nothing waits for a thread that holds no unit: on a busy machine one that has lost its core is not
// missed, and finds its way when it is back. It may come back after the pass has ended and even after
// the next one has begun. The counters of pass p start at p · 2^UNIT_BITS, and a unit is claimed by
// compare-and-exchange from a value of one's own pass alone, so a late thread can claim nothing; to it
// every step looks done.
import { CONTROL_BASE, CONTROL_SLEEPERS, STEP_CLAIMED, STEP_DONE } from "../layout";

/** Looks at a counter this many times before the thread parks (some tens of microseconds): to be woken takes longer. */
const SPINS: i32 = 30000;

// One instance of the module a thread, so these are the thread's own.
let step: usize = 0;
let base: i32 = 0;
let units: i32 = 0;
let mine: i32 = 0;

/** Turns to a step's counters; `passBase` is where they started. */
export function enterStep(counters: usize, passBase: i32): void {
  step = counters;
  base = passBase;
  units = 0;
  mine = 0;
}

/** Says how many units the step has: the same number in every thread. */
@inline
export function share(count: i32): void {
  units = count;
}

/** The next unit that is this thread's to compute; −1 where none is left. */
export function nextUnit(): i32 {
  let seen = atomic.load<i32>(step + STEP_CLAIMED);
  while (((seen - base) as u32) < (units as u32)) {
    const was = atomic.cmpxchg<i32>(step + STEP_CLAIMED, seen, seen + 1);
    if (was == seen) {
      mine++;
      return seen - base;
    }
    seen = was;
  }
  return -1;
}

@inline
function isDone(): bool {
  return ((atomic.load<i32>(step + STEP_DONE) - base) as u32) >= (units as u32);
}

/** Hands in this thread's units and returns when all of the step's are done. */
export function leaveStep(): void {
  if (mine > 0 && atomic.add<i32>(step + STEP_DONE, mine) - base + mine == units) {
    if (atomic.load<i32>(CONTROL_BASE + CONTROL_SLEEPERS) > 0) atomic.notify(step + STEP_DONE, -1);
    return;
  }
  for (let i: i32 = 0; i < SPINS; i++) {
    if (isDone()) return;
  }
  atomic.add<i32>(CONTROL_BASE + CONTROL_SLEEPERS, 1);
  for (;;) {
    const done = atomic.load<i32>(step + STEP_DONE);
    if (((done - base) as u32) >= (units as u32)) break;
    atomic.wait<i32>(step + STEP_DONE, done, -1);
  }
  atomic.sub<i32>(CONTROL_BASE + CONTROL_SLEEPERS, 1);
}

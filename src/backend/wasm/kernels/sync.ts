// Threads share the steps of a pass: each step's units are claimed from one counter, and a barrier
// stands between steps. Which thread computes a unit never changes a bit of it.
import {
  BARRIER_COUNT,
  BARRIER_GENERATION,
  BARRIER_SLEEPERS,
  CONTROL_BASE,
  WORK_NEXT,
} from "../layout";

/** Looks at the barrier this many times before the thread parks (about 10 µs). */
const SPINS: i32 = 1500;

/** Claims the next unit of the current step. */
@inline
export function nextUnit(): i32 {
  return atomic.add<i32>(CONTROL_BASE + WORK_NEXT, 1);
}

/**
 * Returns when all threads have arrived. The last one resets the unit counter. Waiting threads look
 * briefly and then sleep, so that a busy machine loses no time slices to spinning.
 */
export function barrier(threads: i32): void {
  const generation = atomic.load<i32>(CONTROL_BASE + BARRIER_GENERATION);
  if (atomic.add<i32>(CONTROL_BASE + BARRIER_COUNT, 1) == threads - 1) {
    atomic.store<i32>(CONTROL_BASE + BARRIER_COUNT, 0);
    atomic.store<i32>(CONTROL_BASE + WORK_NEXT, 0);
    atomic.add<i32>(CONTROL_BASE + BARRIER_GENERATION, 1);
    if (atomic.load<i32>(CONTROL_BASE + BARRIER_SLEEPERS) > 0) {
      atomic.notify(CONTROL_BASE + BARRIER_GENERATION, -1);
    }
    return;
  }
  for (let i: i32 = 0; i < SPINS; i++) {
    if (atomic.load<i32>(CONTROL_BASE + BARRIER_GENERATION) != generation) return;
  }
  atomic.add<i32>(CONTROL_BASE + BARRIER_SLEEPERS, 1);
  while (atomic.load<i32>(CONTROL_BASE + BARRIER_GENERATION) == generation) {
    atomic.wait<i32>(CONTROL_BASE + BARRIER_GENERATION, generation, -1);
  }
  atomic.sub<i32>(CONTROL_BASE + BARRIER_SLEEPERS, 1);
}

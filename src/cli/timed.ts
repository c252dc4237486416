import { systemClock } from "../clock.ts";

/** What `work` returns, and how long it took. */
export async function timed<T>(work: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const startMs = systemClock.nowMs();
  const value = await work();
  return { value, ms: systemClock.nowMs() - startMs };
}

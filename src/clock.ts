/** The one place that reads time, so that tests and simulations can bring their own. */
export interface Clock {
  /** Milliseconds from an arbitrary start, never going back. */
  nowMs(): number;
  /** Seconds since 1970, for `created` fields. */
  unixSeconds(): number;
}

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  unixSeconds: () => Math.floor(Date.now() / 1000),
};

/** Calls `ring` after `ms`, unless what it returns is called before. */
export type SetAlarm = (ms: number, ring: () => void) => () => void;

/** The system's. The process doesn't stay for it alone. */
export const setAlarm: SetAlarm = (ms, ring) => {
  const timer = setTimeout(ring, ms);
  // Browsers have numbers here, and no process to hold.
  if (typeof timer === "object") timer.unref();
  return () => clearTimeout(timer);
};

/** Resolves after `ms`. The process doesn't stay for it alone. */
export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setAlarm(ms, resolve);
  });

/** Lets the event loop turn once: timers, sockets and signals get their say. */
export const nextTask = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

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

/** Resolves after `ms`. The process doesn't stay for it alone. */
export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    // Browsers have numbers here, and no process to hold.
    if (typeof timer === "object") timer.unref();
  });

/** Lets the event loop turn once: timers, sockets and signals get their say. */
export const nextTask = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

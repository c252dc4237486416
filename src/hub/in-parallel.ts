/**
 * Does some of the work at once, in its order. After a failure nothing begins, what has begun is told to
 * end, and when it has, the failure is thrown.
 */
export async function inParallel<T>(
  items: readonly T[],
  atOnce: number,
  signal: AbortSignal,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const both = AbortSignal.any([signal, failed.signal]);
  const waiting = items.values();
  const worker = async () => {
    for (const item of waiting) {
      if (both.aborted) return;
      await work(item, both);
    }
  };
  const workers = Array.from({ length: atOnce }, () =>
    worker().catch((error) => failed.abort(error)),
  );
  await Promise.all(workers);
  both.throwIfAborted();
}

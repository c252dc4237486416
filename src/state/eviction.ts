import type { CachedPrefix, Entry } from "./cached-prefix.ts";

/** A conversation goes on as long as it used the cache within so many uses of all: about 50 requests. */
const activeUses = 256;

/**
 * What goes next; null where nothing is left. First what its conversation has left behind, then what
 * belongs to no conversation that goes on, so that an unrelated request evicts its own before theirs;
 * among equals the one that was not used for longest.
 * @param now the latest use
 * @param spared an entry that stays
 */
export function nextVictim(
  entries: Iterable<Entry>,
  now: number,
  spared: CachedPrefix | null = null,
): Entry | null {
  let victim: Entry | null = null;
  for (const entry of entries) {
    if (entry === spared) continue;
    if (!victim || goesBefore(entry, victim, now)) victim = entry;
  }
  return victim;
}

function goesBefore(a: Entry, b: Entry, now: number): boolean {
  const [first, second] = [rankOf(a, now), rankOf(b, now)];
  return first === second ? a.usedAt < b.usedAt : first < second;
}

/** Conversations that ended long ago must not keep new ones from staying. */
function rankOf({ superseded, proven, usedAt }: Entry, now: number): number {
  if (superseded) return 0;
  return proven && usedAt > now - activeUses ? 2 : 1;
}

import type { SpillEntry } from "./spill-file.ts";
import type { SpillIdentity } from "./spill-header.ts";

export const sampleIdentity: SpillIdentity = {
  model: "m1 + d1",
  backend: "f32, é",
  build: "1.2.3",
  probe: "0123456789abcdef",
};

/** Bits of all kinds, NaNs with payloads among them; the same for the same arguments. */
export function sampleFloats(length: number, seed: number): Float32Array {
  let state = (seed ^ 0x9e3779b9) | 1;
  const bits = Uint32Array.from({ length }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state;
  });
  const special = [0x7fa00001, 0xffc12345, 0x7f800000, 0x80000000];
  bits.set(special.slice(0, length));
  return new Float32Array(bits.buffer);
}

/** An entry of some tokens; the arrays have different lengths. */
export function sampleEntry(
  ids: readonly number[],
  { context = true, stateFloats = 24 }: { context?: boolean; stateFloats?: number } = {},
): SpillEntry {
  const rows = ids.length;
  const seed = ids.reduce((sum, id) => Math.imul(sum, 31) + id, context ? 1 : 2);
  const floats = (length: number, which: number) => sampleFloats(length, seed + which);
  const snapshot = {
    rows,
    state: floats(stateFloats, 1),
    history: floats(5, 2),
    keys: floats(4 * rows, 3),
    values: floats(4 * rows, 4),
    draftKeys: floats(2 * rows, 5),
    draftValues: floats(2 * rows, 6),
    logits: null,
  };
  return { ids, context, snapshot };
}

/** An entry as plain numbers, in which NaNs differ by their bits. */
export function bitsOf(entry: SpillEntry | null): unknown {
  if (!entry) return null;
  const { rows, logits, ...arrays } = entry.snapshot;
  const bits = Object.entries(arrays).map(([part, floats]) => [
    part,
    new Uint32Array(floats.slice().buffer),
  ]);
  return { ids: entry.ids, context: entry.context, rows, logits, bits };
}

/** What the process that is killed writes: the entries of a stream as it grows, 2 MiB each. */
export function killedEntry(index: number): SpillEntry {
  const ids = Array.from({ length: index + 1 }, (_, row) => row * row + 7);
  return sampleEntry(ids, { stateFloats: 2 ** 19 });
}

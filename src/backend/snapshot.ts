import { invariant } from "../errors.ts";
import type { PageId } from "../ids.ts";
import { pageRows } from "../limits.ts";
import { drafterSizes } from "../model/drafter-shape.ts";
import { derivedSizes } from "../model/shape.ts";
import type { BackendInfo, Snapshot } from "./backend.ts";

/** Refuses a snapshot of another shape before a word of it is written. */
export function checkSnapshot(
  { shape, drafter }: BackendInfo,
  pages: readonly PageId[],
  snapshot: Snapshot,
): void {
  const sizes = derivedSizes(shape);
  const kvFloats = sizes.fullLayers * snapshot.rows * sizes.kvDim;
  const draftFloats = drafter
    ? drafter.layers.length * snapshot.rows * drafterSizes(drafter).kvDim
    : 0;
  const lengths: readonly [string, number, number][] = [
    ["state", snapshot.state.length, sizes.linearLayers * sizes.stateFloats],
    ["history", snapshot.history.length, sizes.linearLayers * sizes.historyFloats],
    ["keys", snapshot.keys.length, kvFloats],
    ["values", snapshot.values.length, kvFloats],
    ["draftKeys", snapshot.draftKeys.length, draftFloats],
    ["draftValues", snapshot.draftValues.length, draftFloats],
    ["logits", snapshot.logits?.length ?? shape.vocabSize, shape.vocabSize],
  ];
  for (const [name, length, expected] of lengths) {
    invariant(length === expected, `a snapshot with ${length} floats of ${name}, not ${expected}`);
  }
  const needed = Math.ceil(snapshot.rows / pageRows);
  invariant(pages.length >= needed, `a snapshot of ${needed} pages, restored into ${pages.length}`);
}

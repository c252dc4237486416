import { windowRowsMax } from "../../limits.ts";
import type { DrafterShape } from "../../model/drafter-shape.ts";
import type { Defines } from "./preprocess.ts";
import { powerOfTwoDivisor } from "./support.ts";

/** Workgroups that share the keys of a block and KV head at most; what each holds of them is a partial result. */
const splits = 16;
/** Queries of a workgroup: rows of a block times the heads of a KV head. */
const queries = 32;
const threads = 256;

const headsAKv = ({ headCount, kvHeadCount }: DrafterShape): number => headCount / kvHeadCount;

/** Workgroups that share a block's queries of a KV head. */
export const draftQueryGroups = (shape: DrafterShape): number =>
  Math.ceil((windowRowsMax * headsAKv(shape)) / queries);

/** Workgroups along the keys; those without any do nothing. */
export const draftSplits: number = splits;

/**
 * The numbers of `kernels/draft_attend.wgsl` and `kernels/draft_merge.wgsl`.
 * @param software whether the adapter is one: many loads in flight are for GPUs
 */
export function draftAttendDefines(shape: DrafterShape, software: boolean): Defines {
  const vectors = shape.headDim / 4;
  return {
    SPLITS: splits,
    QUERIES: queries,
    QUERY_GROUPS: draftQueryGroups(shape),
    THREADS: threads,
    VECS: vectors,
    // Quads of queries that a thread takes when it adds up values.
    V_QUADS: Math.ceil(queries / 4 / Math.floor(threads / vectors)),
    K_AHEAD: software ? 1 : powerOfTwoDivisor(vectors, 4),
    V_AHEAD: software ? 1 : 4,
  };
}

/** Floats of the partial results of `rows` rows. */
export function draftPartialsMax(
  { headCount, headDim }: DrafterShape,
  rows: number,
): { readonly outs: number; readonly stats: number } {
  const partials = rows * headCount * splits;
  return { outs: partials * headDim, stats: 2 * partials };
}

import { derivedSizes, type ModelShape } from "../../model/shape.ts";

/**
 * Where rows or columns of a tensor lie in a GGUF file. llama.cpp's converter reorders what belongs to
 * value heads, so that head h uses key head h mod Hk instead of ⌊h / r⌋, r = Hv / Hk: head kg·r + j is
 * stored as head j·Hk + kg.
 */
export type StoredPlace = (index: number) => number;

/** @param leading rows before those of the first head, which keep their places */
function byHeads(shape: ModelShape, perHead: number, leading = 0): StoredPlace {
  const { linearKeyHeads, linearValueHeads } = shape;
  const ratio = linearValueHeads / linearKeyHeads;
  return (index) => {
    if (index < leading) return index;
    const head = Math.floor((index - leading) / perHead);
    const stored = (head % ratio) * linearKeyHeads + Math.floor(head / ratio);
    return leading + stored * perHead + ((index - leading) % perHead);
  };
}

/** Of the rows of a matrix or small tensor; null where they keep their places. */
export function storedRows(shape: ModelShape, path: string): StoredPlace | null {
  const part = /\.linear_attn\.(\w+)$/.exec(path)?.[1];
  if (part === "in_proj_qkv" || part === "conv1d") {
    return byHeads(shape, shape.linearValueDim, 2 * derivedSizes(shape).keyDim);
  }
  if (part === "in_proj_z") return byHeads(shape, shape.linearValueDim);
  const isPerHead = ["in_proj_a", "in_proj_b", "A_log", "dt_bias"].includes(part ?? "");
  return isPerHead ? byHeads(shape, 1) : null;
}

/** Of the columns of a matrix; null where they keep their places. */
export function storedCols(shape: ModelShape, path: string): StoredPlace | null {
  return path.endsWith(".linear_attn.out_proj") ? byHeads(shape, shape.linearValueDim) : null;
}

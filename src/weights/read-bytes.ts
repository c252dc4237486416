import { projectionPaths } from "../model/forward.ts";
import { matrixBytes } from "./matrix-bytes.ts";
import type { Weights } from "./weights.ts";

/** Bytes of the matrices that every token reads, as stored: all but the embedding's, unless that is the head. */
export const readBytesOf = ({ shape, matrix }: Weights): number =>
  projectionPaths(shape).reduce((sum, path) => sum + matrixBytes(matrix(path)), 0);

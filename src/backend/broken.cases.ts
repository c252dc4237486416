import type { Matrix, Weights } from "../weights/weights.ts";

/** Weights whose embedding of token 7 is NaN: every row that follows it is too. */
export function withNanToken(weights: Weights): Weights {
  const embedding = poisoned(weights.matrix("embed_tokens"));
  return {
    ...weights,
    matrix: (path) => (path === "embed_tokens" ? embedding : weights.matrix(path)),
    vector: (path) => weights.vector(path),
  };
}

function poisoned(matrix: Matrix): Matrix {
  if (matrix.kind === "dense") throw new Error("affine embeddings only");
  return {
    ...matrix,
    async read(firstRow, rowCount) {
      const rows = await matrix.read(firstRow, rowCount);
      const groups = rows.scales.length / rowCount;
      const row = 7 - firstRow;
      if (row >= 0 && row < rowCount) {
        rows.scales.fill(Number.NaN, row * groups, (row + 1) * groups);
      }
      return rows;
    },
  };
}

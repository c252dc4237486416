import type { Candidates } from "../backend/candidates.ts";
import { invariant } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { floatBytes, widen } from "../weights/floats.ts";

/** What a block drafter found for the positions after the anchor, in one pass. */
export interface Lattice {
  /** By position, its likeliest tokens by (logit descending, id ascending). */
  readonly rows: readonly Candidates[];
  /** [rows, rank]: DFlash2's π_t, by which neighbours are scored; null for DFlash, which scores none. */
  readonly queries: Float32Array | null;
}

/** DFlash2's two tables over the vocabulary: what a token expects after it, and what it is as a successor. */
export interface Codebooks {
  readonly rank: number;
  /** [rank]. */
  predecessor(id: TokenId): Float32Array;
  /** [rank]. */
  successor(id: TokenId): Float32Array;
}

/** Codebooks that stay in bf16: a draft reads a few hundred of their rows, widened when asked for. */
export class Bf16Codebooks implements Codebooks {
  readonly rank: number;
  readonly #predecessors: Uint8Array;
  readonly #successors: Uint8Array;

  /** @param predecessors, successors [vocabSize, rank], little-endian; kept, not copied */
  constructor(rank: number, predecessors: Uint8Array, successors: Uint8Array) {
    const bytes = predecessors.byteLength;
    const whole = rank > 0 && bytes > 0 && bytes % (rank * floatBytes.bf16) === 0;
    invariant(whole && bytes === successors.byteLength, `codebooks of rank ${rank}`);
    this.rank = rank;
    this.#predecessors = predecessors;
    this.#successors = successors;
  }

  predecessor(id: TokenId): Float32Array {
    return this.#row(this.#predecessors, id);
  }

  successor(id: TokenId): Float32Array {
    return this.#row(this.#successors, id);
  }

  #row(table: Uint8Array, id: TokenId): Float32Array {
    const bytes = this.rank * floatBytes.bf16;
    invariant(id >= 0 && (id + 1) * bytes <= table.byteLength, `token ${id} in the codebooks`);
    return widen(table.subarray(id * bytes, (id + 1) * bytes), "bf16");
  }
}

/**
 * How well each of a row's candidates follows `previous`: Σ_ρ Pred[previous,ρ]·π[ρ]·Succ[c,ρ], in f64,
 * ρ ascending (the reference drafter's selector).
 * @param query [rank]: the row's π.
 */
export function edgeScores(
  codebooks: Codebooks,
  query: Float32Array,
  previous: TokenId,
  ids: Int32Array,
): Float64Array {
  const expected = new Float64Array(codebooks.predecessor(previous)).map(
    (value, rho) => value * query[rho]!,
  );
  return Float64Array.from(ids, (id) => {
    const successor = codebooks.successor(id);
    let sum = 0;
    for (let rho = 0; rho < expected.length; rho++) sum += expected[rho]! * successor[rho]!;
    return sum;
  });
}

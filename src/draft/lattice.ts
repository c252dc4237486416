import type { Candidates } from "../backend/candidates.ts";
import { invariant } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { floatBytes } from "../weights/floats.ts";

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
  readonly #predecessors: Uint16Array;
  readonly #successors: Uint16Array;

  /** @param predecessors, successors [vocabSize, rank], little-endian; kept, and copied only where they begin at an odd address */
  constructor(rank: number, predecessors: Uint8Array, successors: Uint8Array) {
    const bytes = predecessors.byteLength;
    const whole = rank > 0 && bytes > 0 && bytes % (rank * floatBytes.bf16) === 0;
    invariant(whole && bytes === successors.byteLength, `codebooks of rank ${rank}`);
    this.rank = rank;
    this.#predecessors = halvesOf(predecessors);
    this.#successors = halvesOf(successors);
  }

  predecessor(id: TokenId): Float32Array {
    return this.#row(this.#predecessors, id);
  }

  successor(id: TokenId): Float32Array {
    return this.#row(this.#successors, id);
  }

  #row(table: Uint16Array, id: TokenId): Float32Array {
    const { rank } = this;
    const first = id * rank;
    invariant(id >= 0 && first + rank <= table.length, `token ${id} in the codebooks`);
    const values = new Float32Array(rank);
    const bits = new Uint32Array(values.buffer);
    for (let rho = 0; rho < rank; rho++) bits[rho] = table[first + rho]! << 16;
    return values;
  }
}

/** The same bytes as numbers of 16 bits. */
function halvesOf(bytes: Uint8Array): Uint16Array {
  const own = bytes.byteOffset % floatBytes.bf16 === 0 ? bytes : bytes.slice();
  return new Uint16Array(own.buffer, own.byteOffset, own.byteLength / floatBytes.bf16);
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
  const expected = new Float64Array(codebooks.predecessor(previous));
  for (let rho = 0; rho < expected.length; rho++) expected[rho]! *= query[rho]!;
  const scores = new Float64Array(ids.length);
  for (let at = 0; at < ids.length; at++) {
    const successor = codebooks.successor(ids[at]!);
    let sum = 0;
    for (let rho = 0; rho < expected.length; rho++) sum += expected[rho]! * successor[rho]!;
    scores[at] = sum;
  }
  return scores;
}

import { invariant } from "../../errors.ts";
import type { StepTensors } from "../../weights/tensors.ts";
import type { Arena } from "./arena.ts";
import type { WeightMemories } from "./far.ts";
import { type PlacedMatrix, placeMatrix, placeRecord } from "./pack.ts";

/** The tensors that steps name, each placed once, however many steps use it. */
export class PlacedTensors {
  readonly #arena: Arena;
  readonly #memories: WeightMemories;
  readonly #tensors: StepTensors;
  /** By matrix: a tied head is the embedding's own. */
  readonly #matrices = new Map<object, PlacedMatrix>();
  /** By matrix and how many of its rows count. */
  readonly #records = new Map<string, number>();
  readonly #vectors = new Map<string, number>();

  /** @param arena where records and vectors go */
  constructor(arena: Arena, memories: WeightMemories, tensors: StepTensors) {
    this.#arena = arena;
    this.#memories = memories;
    this.#tensors = tensors;
  }

  /** The address of a matrix's record (layout.ts); of its first `rows` alone where they are given. */
  matrix(path: string, rows?: number): number {
    const matrix = this.#tensors.matrix(path);
    const placed = this.#matrices.get(matrix) ?? placeMatrix(this.#memories, matrix);
    this.#matrices.set(matrix, placed);
    const count = rows ?? matrix.rows;
    invariant(count <= matrix.rows, `${count} of ${path}'s ${matrix.rows} rows`);
    const key = `${placed.far} ${placed.data} ${count}`;
    const at = this.#records.get(key) ?? placeRecord(this.#arena, placed, count);
    this.#records.set(key, at);
    return at;
  }

  /** The address of a vector, as stored or as `change` makes it, which a path has one of. */
  vector(
    path: string,
    length: number,
    change: (values: Float32Array) => Float32Array = (values) => values,
  ): number {
    const read = async () => change(await this.#tensors.vector(path));
    const at = this.#vectors.get(path) ?? this.#arena.placeF32(length, read);
    this.#vectors.set(path, at);
    return at;
  }
}

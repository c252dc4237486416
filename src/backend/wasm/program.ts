import { forwardSteps, type RowBuffer, type Step } from "../../model/forward.ts";
import { type DerivedSizes, derivedSizes, type ModelShape } from "../../model/shape.ts";
import type { Weights } from "../../weights/weights.ts";
import { transposed } from "../arrays.ts";
import type { BackendOptions } from "../backend.ts";
import type { Arena } from "./arena.ts";
import {
  INSTRUCTION_BYTES,
  OP_ATTEND,
  OP_CONV,
  OP_EMBED,
  OP_GATED_NORM,
  OP_KEEP,
  OP_NORM,
  OP_PROJECT,
  OP_ROPE,
  OP_SCAN,
  OP_SWIGLU,
  OP_TAP,
  PASS_DRAWS,
  PASS_KEEPS,
  PASS_ROWS,
  STEP_BYTES,
  WINDOW_ROWS,
} from "./layout.ts";
import { placeMatrix } from "./pack.ts";
import type { Places } from "./places.ts";

/** Over what an instruction runs, by the place of its count: the pass's rows, or those that draw. */
const allRows = PASS_ROWS;
const drawRows = PASS_DRAWS;

const floatBits = new DataView(new ArrayBuffer(4));

/** The word that holds a float operand. */
function floatWord(value: number): number {
  floatBits.setFloat32(0, value, true);
  return floatBits.getUint32(0, true);
}

/** Addresses of the instructions and of the steps' counters, and how many steps there are. */
export interface Program {
  readonly at: number;
  readonly count: number;
  readonly counters: number;
}

/** Turns the steps of the forward pass into instructions for `kernels/index.ts`. */
export class ProgramBuilder {
  readonly #arena: Arena;
  readonly #weights: Weights;
  readonly #shape: ModelShape;
  readonly #sizes: DerivedSizes;
  readonly #places: Places;
  readonly #activations: number;
  readonly #matrices = new Map<object, number>();
  readonly #vectors = new Map<string, number>();
  #tap = 0;

  constructor(arena: Arena, options: BackendOptions, places: Places, activations: number) {
    this.#arena = arena;
    this.#weights = options.weights;
    this.#shape = options.weights.shape;
    this.#sizes = derivedSizes(this.#shape);
    this.#places = places;
    this.#activations = activations;
  }

  /** Places weights, instructions and the steps' counters. */
  build(taps: readonly number[]): Program {
    const steps = forwardSteps(this.#shape, taps);
    const instructions = steps.map((step) => this.#encode(step));
    for (let layer = 0; layer < this.#sizes.linearLayers; layer++) {
      instructions.push(this.#keep(layer));
    }
    const words = instructions.flatMap((instruction) => {
      const padding = INSTRUCTION_BYTES / 4 - instruction.length;
      return [...instruction, ...new Array<number>(padding).fill(0)];
    });
    const counters = this.#arena.place(STEP_BYTES * (instructions.length + 1));
    return { at: this.#arena.placeU32(words), count: instructions.length, counters };
  }

  #encode(step: Step): number[] {
    switch (step.op) {
      case "embed":
        return [OP_EMBED, allRows, this.#matrix(step.matrix), ...this.#row(step.out)];
      case "tap": {
        const tap = this.#places.taps[this.#tap++]!;
        const input = this.#row(step.input);
        return [OP_TAP, allRows, ...input, tap.at, tap.strideBytes, this.#shape.hiddenSize];
      }
      case "norm":
        return [
          OP_NORM,
          step.rows === "draws" ? drawRows : allRows,
          ...this.#row(step.input),
          ...this.#row(step.out),
          this.#shape.hiddenSize,
          this.#vector(step.weight, this.#shape.hiddenSize),
          floatWord(this.#shape.normEps),
        ];
      case "project":
        return this.#project(step);
      case "conv":
        return this.#conv(step.module, step.linearLayer);
      case "scan":
        return this.#scan(step.linearLayer);
      case "gatedNorm":
        return [
          OP_GATED_NORM,
          allRows,
          ...this.#row("delta"),
          ...this.#row("z"),
          this.#vector(step.weight, this.#shape.linearValueDim),
          this.#shape.linearValueHeads,
          this.#shape.linearValueDim,
          floatWord(this.#shape.normEps),
          ...this.#row("mixed"),
        ];
      case "rope":
        return this.#rope(step.module, step.fullLayer);
      case "attend":
        return [
          OP_ATTEND,
          allRows,
          ...this.#row("query"),
          ...this.#row("queryGate"),
          this.#places.keys[step.fullLayer]!,
          this.#places.values[step.fullLayer]!,
          ...this.#row("attended"),
          this.#attentionRecord(),
        ];
      case "swiglu":
        return [
          OP_SWIGLU,
          allRows,
          ...this.#row("gate"),
          ...this.#row("up"),
          this.#shape.intermediateSize,
        ];
      default:
        return step satisfies never;
    }
  }

  #project(step: Step & { op: "project" }): number[] {
    const records = step.projections.flatMap(({ matrix, out, accumulate }) => [
      this.#matrix(matrix),
      ...this.#row(out),
      accumulate ? 1 : 0,
    ]);
    return [
      OP_PROJECT,
      step.rows === "draws" ? drawRows : allRows,
      ...this.#row(step.input),
      step.projections.length,
      this.#activations,
      this.#arena.placeU32(records),
    ];
  }

  #conv(module: string, layer: number): number[] {
    const sizes = this.#sizes;
    const { convTaps, linearValueHeads } = this.#shape;
    const weights = this.#arena.placeF32(sizes.convDim * convTaps, async () =>
      transposed(await this.#weights.vector(`${module}.conv1d`), convTaps),
    );
    const rate = this.#arena.placeF32(linearValueHeads, async () =>
      (await this.#weights.vector(`${module}.A_log`)).map((value) => -Math.exp(value)),
    );
    const bias = this.#vector(`${module}.dt_bias`, linearValueHeads);
    const gates = this.#arena.placeU32([
      ...this.#row("b"),
      ...this.#row("a"),
      rate,
      bias,
      ...this.#row("gates"),
    ]);
    return [
      OP_CONV,
      allRows,
      ...this.#row("qkv"),
      weights,
      convTaps,
      this.#places.histories[layer]!,
      4 * sizes.historyFloats,
      ...this.#row("conv"),
      ...this.#deltaHeads(),
      gates,
    ];
  }

  #scan(layer: number): number[] {
    return [
      OP_SCAN,
      allRows,
      ...this.#row("conv"),
      ...this.#row("gates"),
      this.#places.states[layer]!,
      4 * this.#sizes.stateFloats,
      ...this.#row("delta"),
      ...this.#deltaHeads(),
      this.#rawRows(layer),
    ];
  }

  #keep(layer: number): number[] {
    return [
      OP_KEEP,
      PASS_KEEPS,
      this.#places.states[layer]!,
      4 * this.#sizes.stateFloats,
      ...this.#deltaHeads(),
      this.#rawRows(layer),
    ];
  }

  /** Where a layer's raw rows, its history and the log of its windows lie. */
  #rawRows(layer: number): number {
    return this.#arena.placeU32([
      ...this.#row("qkv"),
      this.#places.histories[layer]!,
      4 * this.#sizes.historyFloats,
      this.#sizes.convDim,
      this.#shape.convTaps - 1,
      this.#places.logs[layer]!,
      WINDOW_ROWS * this.#places.logRowBytes,
      this.#places.logRowBytes,
    ]);
  }

  #rope(module: string, layer: number): number[] {
    return [
      OP_ROPE,
      allRows,
      ...this.#row("queryGate"),
      this.#row("key")[0]!,
      ...this.#row("value"),
      this.#vector(`${module}.q_norm`, this.#shape.headDim),
      this.#vector(`${module}.k_norm`, this.#shape.headDim),
      floatWord(this.#shape.normEps),
      ...this.#row("query"),
      this.#places.keys[layer]!,
      this.#places.values[layer]!,
      this.#attentionRecord(),
    ];
  }

  #deltaHeads(): number[] {
    const { linearKeyHeads, linearValueHeads, linearKeyDim, linearValueDim } = this.#shape;
    return [linearKeyHeads, linearValueHeads, linearKeyDim, linearValueDim];
  }

  #attentionRecord(): number {
    const { headCount, kvHeadCount, headDim, rotaryDim } = this.#shape;
    const { pageBytes } = this.#places;
    return this.#arena.placeU32([headCount, kvHeadCount, headDim, rotaryDim, pageBytes]);
  }

  #row(name: RowBuffer): [at: number, strideBytes: number] {
    const { at, strideBytes } = this.#places.buffers.get(name)!;
    return [at, strideBytes];
  }

  /** A tied head is the embedding's own matrix and is placed once. */
  #matrix(path: string): number {
    const matrix = this.#weights.matrix(path);
    const at = this.#matrices.get(matrix) ?? placeMatrix(this.#arena, matrix);
    this.#matrices.set(matrix, at);
    return at;
  }

  #vector(path: string, length: number): number {
    const at =
      this.#vectors.get(path) ?? this.#arena.placeF32(length, () => this.#weights.vector(path));
    this.#vectors.set(path, at);
    return at;
  }
}

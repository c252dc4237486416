import type { SlotId } from "../../ids.ts";
import type { DrafterShape } from "../../model/drafter-shape.ts";
import { draftPrefix } from "../../model/drafter-steps.ts";
import { bufferWidths, isDrawBuffer, type RowBuffer, type Step } from "../../model/forward.ts";
import { type Plan, pathOf } from "../../model/plan.ts";
import { rotationOf } from "../../model/rope.ts";
import type { ModelShape } from "../../model/shape.ts";
import { concat } from "../arrays.ts";
import { attend, placeKeys, placeQueries } from "./attention.ts";
import { convStep, gatedNormStep, scanStep, type WindowLog } from "./delta-steps.ts";
import { draftStep } from "./draft-steps.ts";
import type { ReferenceTensors } from "./load.ts";
import type { ReferenceMemory } from "./memory.ts";
import { eachRow, type PassView } from "./pass-view.ts";
import { multiply, rmsNorm, sigmoid, silu } from "./tensors.ts";

/** Executes the steps of one pass, row by row and in the order of the equations. */
export class ReferencePass implements PassView {
  readonly shape: ModelShape;
  readonly drafter: DrafterShape | null;
  readonly tensors: ReferenceTensors;
  readonly memory: ReferenceMemory;
  readonly plan: Plan;
  readonly taps: Float32Array[] = [];
  /** What the keep of each window needs. */
  readonly windows: Map<SlotId, WindowLog> = new Map();
  readonly #buffers = new Map<RowBuffer, Float32Array[]>();

  constructor(view: Omit<PassView, "rows">) {
    this.shape = view.shape;
    this.drafter = view.drafter;
    this.tensors = view.tensors;
    this.memory = view.memory;
    this.plan = view.plan;
    const { ids, draws } = view.plan;
    for (const [name, width] of bufferWidths(view.shape, view.drafter)) {
      const length = isDrawBuffer(name) ? draws.length : ids.length;
      this.#buffers.set(
        name,
        Array.from({ length }, () => new Float32Array(width)),
      );
    }
  }

  rows(name: RowBuffer): Float32Array[] {
    return this.#buffers.get(name)!;
  }

  run(steps: readonly Step[]): this {
    for (const step of steps) this.#step(step);
    return this;
  }

  #step(step: Step): void {
    switch (step.op) {
      case "embed":
        this.#embed(step);
        break;
      case "tap":
        this.taps.push(concat(this.rows(step.input)));
        break;
      case "norm":
        this.#norm(step);
        break;
      case "project":
        this.#project(step);
        break;
      case "conv":
        convStep(this, step);
        break;
      case "scan":
        scanStep(this, step, this.windows);
        break;
      case "gatedNorm":
        gatedNormStep(this, step);
        break;
      case "rope":
        this.#rope(step);
        break;
      case "attend":
        this.#attend(step);
        break;
      case "swiglu":
        this.#swiglu(step);
        break;
      default:
        draftStep(this, this.drafter!, step);
    }
  }

  #embed({ matrix, out }: Step & { op: "embed" }): void {
    const table = this.tensors.matrix(matrix);
    this.rows(out).forEach((row, index) => {
      const at = this.plan.ids[index]! * row.length;
      row.set(table.subarray(at, at + row.length));
    });
  }

  #norm({ input, weight, out, rows }: Step & { op: "norm" }): void {
    const weights = this.tensors.vector(weight);
    const owner = weight.startsWith(draftPrefix) ? this.drafter! : this.shape;
    this.rows(out).forEach((row, index) => {
      const source = rows === "draws" ? this.plan.draws[index]!.row : index;
      rmsNorm(this.rows(input)[source]!, weights, owner.normEps, row);
    });
  }

  #project({ input, projections }: Step & { op: "project" }): void {
    for (const { matrix, out, accumulate, outAt = 0, rows } of projections) {
      const weights = this.tensors.matrix(matrix);
      this.rows(out).forEach((row, index) => {
        const x = this.rows(input)[index]!;
        const y = row.subarray(outAt, outAt + (rows ?? weights.length / x.length));
        multiply(weights, x, y, accumulate);
      });
    }
  }

  #rope({ module, fullLayer }: Step & { op: "rope" }): void {
    const { shape } = this;
    const rotation = rotationOf(shape);
    const queryNorm = this.tensors.vector(`${module}.q_norm`);
    const keyNorm = this.tensors.vector(`${module}.k_norm`);
    const kv = this.memory.kv.layers[fullLayer]!;
    eachRow(this.plan, ({ segment, row, place, position }) => {
      const vectors = this.rows("queryGate")[row]!;
      const out = this.rows("query")[row]!;
      // A head's gate lies behind its query.
      const stride = 2 * shape.headDim;
      placeQueries(shape, queryNorm, rotation, { vectors, stride, out }, position);
      const key = this.rows("key")[row]!;
      const value = this.rows("value")[row]!;
      placeKeys(shape, keyNorm, rotation, { key, value, position }, segment.pages, place, kv);
    });
  }

  #attend({ fullLayer }: Step & { op: "attend" }): void {
    const dim = this.shape.headDim;
    const kv = this.memory.kv.layers[fullLayer]!;
    eachRow(this.plan, ({ segment, row, local }) => {
      const before = Array.from({ length: segment.start }, (_, place) => place);
      const places = [...before, ...pathOf(segment, local).map((at) => segment.start + at)];
      const sums = attend(this.shape, this.rows("query")[row]!, places, segment.pages, kv);
      const gates = this.rows("queryGate")[row]!;
      const attended = this.rows("attended")[row]!;
      sums.forEach((sum, at) => {
        const head = Math.floor(at / dim);
        attended[at] = sum * sigmoid(gates[(head + 1) * dim + at]!);
      });
    });
  }

  #swiglu(step: Step & { op: "swiglu" }): void {
    this.rows(step.gate).forEach((gate, row) => {
      const up = this.rows(step.up)[row]!;
      for (let i = 0; i < gate.length; i++) gate[i] = silu(gate[i]!) * up[i]!;
    });
  }
}

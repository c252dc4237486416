import type { SlotId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import { bufferWidths, type RowBuffer, type Step } from "../../model/forward.ts";
import type { Plan, Segment } from "../../model/plan.ts";
import type { ModelShape } from "../../model/shape.ts";
import { concat } from "../arrays.ts";
import { attendRow, type KvPages, placeRow } from "./attention.ts";
import { advance, convolve, gatesOf } from "./delta.ts";
import type { ReferenceTensors } from "./load.ts";
import { multiply, rmsNorm, silu } from "./tensors.ts";

/** What a slot remembers, one array a linear layer. */
export interface SlotState {
  readonly state: Float32Array[];
  /** [taps − 1, channels], oldest first. */
  readonly history: Float32Array[];
}

/** The rows of a window in one linear layer, as `advance` takes them, and their raw qkv. */
interface LoggedLayer {
  readonly conv: readonly Float32Array[];
  readonly gates: readonly Float32Array[];
  readonly qkv: readonly Float32Array[];
}

/** One entry a linear layer. */
export type WindowLog = LoggedLayer[];

/** Executes the steps of one pass, row by row and in the order of the equations. */
export class ReferencePass {
  readonly #shape: ModelShape;
  readonly #tensors: ReferenceTensors;
  readonly #slots: readonly SlotState[];
  readonly #kv: readonly KvPages[];
  readonly #plan: Plan;
  readonly #buffers = new Map<RowBuffer, Float32Array[]>();
  readonly taps: Float32Array[] = [];
  /** What the keep of each window needs. */
  readonly windows: Map<SlotId, WindowLog> = new Map();

  constructor(
    shape: ModelShape,
    tensors: ReferenceTensors,
    slots: readonly SlotState[],
    kv: readonly KvPages[],
    plan: Plan,
  ) {
    this.#shape = shape;
    this.#tensors = tensors;
    this.#slots = slots;
    this.#kv = kv;
    this.#plan = plan;
    for (const [name, width] of Object.entries(bufferWidths(shape))) {
      const drawn = name === "logits" || name === "normedDraw";
      const rows = drawn ? plan.draws.length : plan.ids.length;
      const buffer = Array.from({ length: rows }, () => new Float32Array(width));
      this.#buffers.set(name as RowBuffer, buffer);
    }
  }

  /** The rows of a buffer. */
  rows(name: RowBuffer): Float32Array[] {
    return this.#buffers.get(name)!;
  }

  run(steps: readonly Step[]): void {
    for (const step of steps) this.#step(step);
  }

  #step(step: Step): void {
    switch (step.op) {
      case "embed":
        this.#embed(step.matrix, step.out);
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
        this.#conv(step.module, step.linearLayer);
        break;
      case "scan":
        this.#scan(step.linearLayer);
        break;
      case "gatedNorm":
        this.#gatedNorm(step.weight);
        break;
      case "rope":
        this.#rope(step.module, step.fullLayer);
        break;
      case "attend":
        this.#attend(step.fullLayer);
        break;
      case "swiglu":
        this.#swiglu();
        break;
      default:
        step satisfies never;
    }
  }

  #embed(matrix: string, out: RowBuffer): void {
    const table = this.#tensors.matrix(matrix);
    this.rows(out).forEach((row, index) => {
      const at = this.#plan.ids[index]! * row.length;
      row.set(table.subarray(at, at + row.length));
    });
  }

  #norm(step: Step & { op: "norm" }): void {
    const weight = this.#tensors.vector(step.weight);
    const input = this.rows(step.input);
    this.rows(step.out).forEach((out, index) => {
      const source = step.rows === "draws" ? this.#plan.draws[index]!.row : index;
      rmsNorm(input[source]!, weight, this.#shape.normEps, out);
    });
  }

  #project(step: Step & { op: "project" }): void {
    for (const { matrix, out, accumulate } of step.projections) {
      const weights = this.#tensors.matrix(matrix);
      this.rows(out).forEach((row, index) => {
        const input = this.rows(step.input)[index]!;
        multiply(weights, input, row, accumulate);
      });
    }
  }

  #conv(module: string, layer: number): void {
    const weights = this.#tensors.delta(module);
    const depth = this.#shape.convTaps - 1;
    this.#eachRow((segment, row, local) => {
      const history = this.#slots[segment.stateSlot]!.history[layer]!;
      const window = Array.from({ length: depth + 1 }, (_, j) => {
        const back = local + j - depth;
        return back >= 0
          ? this.rows("qkv")[segment.firstRow + back]!
          : historyRow(history, depth, back + depth);
      });
      convolve(this.#shape, weights, window, this.rows("conv")[row]!);
      gatesOf(weights, this.rows("b")[row]!, this.rows("a")[row]!, this.rows("gates")[row]!);
    });
  }

  #scan(layer: number): void {
    for (const segment of this.#plan.segments) {
      const { firstRow, rows, stateSlot, nextSlot } = segment;
      const rowsOf = (name: RowBuffer) => this.rows(name).slice(firstRow, firstRow + rows);
      const logged = { conv: rowsOf("conv"), gates: rowsOf("gates"), qkv: rowsOf("qkv") };
      const from = this.#slots[stateSlot]!;
      const state = from.state[layer]!.slice();
      rowsOf("delta").forEach((out, local) => {
        advance(this.#shape, logged.conv[local]!, logged.gates[local]!, state, out);
      });
      if (segment.window) {
        this.#log(segment.stateSlot, layer, logged);
        continue;
      }
      const to = this.#slots[nextSlot]!;
      to.state[layer]!.set(state);
      publish(from.history[layer]!, logged.qkv, to.history[layer]!);
    }
  }

  /** The row buffers are used again by the next layer. */
  #log(slot: SlotId, layer: number, { conv, gates, qkv }: LoggedLayer): void {
    const copies = (rows: readonly Float32Array[]) => rows.map((row) => row.slice());
    const log = this.windows.get(slot) ?? [];
    log[layer] = { conv: copies(conv), gates: copies(gates), qkv: copies(qkv) };
    this.windows.set(slot, log);
  }

  #gatedNorm(weightName: string): void {
    const weight = this.#tensors.vector(weightName);
    const width = this.#shape.linearValueDim;
    this.rows("delta").forEach((delta, row) => {
      const z = this.rows("z")[row]!;
      const mixed = this.rows("mixed")[row]!;
      for (let at = 0; at < delta.length; at += width) {
        const out = mixed.subarray(at, at + width);
        rmsNorm(delta.subarray(at, at + width), weight, this.#shape.normEps, out);
        for (let i = 0; i < width; i++) out[i] = out[i]! * silu(z[at + i]!);
      }
    });
  }

  #rope(module: string, layer: number): void {
    const norms = {
      query: this.#tensors.vector(`${module}.q_norm`),
      key: this.#tensors.vector(`${module}.k_norm`),
    };
    this.#eachRow((segment, row, local) => {
      const buffers = {
        queryGate: this.rows("queryGate")[row]!,
        key: this.rows("key")[row]!,
        value: this.rows("value")[row]!,
        query: this.rows("query")[row]!,
      };
      const position = segment.start + local;
      placeRow(this.#shape, norms, buffers, position, segment.pages, this.#kv[layer]!);
    });
  }

  #attend(layer: number): void {
    this.#eachRow((segment, row, local) => {
      attendRow(
        this.#shape,
        this.rows("query")[row]!,
        this.rows("queryGate")[row]!,
        segment.start + local,
        segment.pages,
        this.#kv[layer]!,
        this.rows("attended")[row]!,
      );
    });
  }

  #swiglu(): void {
    this.rows("gate").forEach((gate, row) => {
      const up = this.rows("up")[row]!;
      for (let i = 0; i < gate.length; i++) gate[i] = silu(gate[i]!) * up[i]!;
    });
  }

  #eachRow(visit: (segment: Segment, row: number, local: number) => void): void {
    for (const segment of this.#plan.segments) {
      for (let local = 0; local < segment.rows; local++) {
        visit(segment, segment.firstRow + local, local);
      }
    }
  }
}

/** Commits the first `rows` rows of a window: the same steps on the slot's own state. */
export function commit(shape: ModelShape, slot: SlotState, log: WindowLog, rows: number): void {
  const unused = new Float32Array(shape.linearValueHeads * shape.linearValueDim);
  log.forEach(({ conv, gates, qkv }, layer) => {
    for (let row = 0; row < rows; row++) {
      advance(shape, conv[row]!, gates[row]!, slot.state[layer]!, unused);
    }
    publish(slot.history[layer]!, qkv.slice(0, rows), slot.history[layer]!);
  });
}

/** The last taps − 1 raw rows of (old history, rows), oldest first; `to` may be `history`. */
function publish(history: Float32Array, rows: readonly Float32Array[], to: Float32Array): void {
  const width = rows[0]!.length;
  const all = concat([history, ...rows.slice(-Math.max(1, history.length / width))]);
  to.set(all.subarray(all.length - to.length));
}

function historyRow(history: Float32Array, depth: number, index: number): Float32Array {
  const width = history.length / depth;
  return history.subarray(index * width, (index + 1) * width);
}

/** Floats of all KV pages of one layer. */
export function pageFloats(shape: ModelShape): number {
  return shape.kvHeadCount * pageRows * shape.headDim;
}

import type { SlotId } from "../../ids.ts";
import type { RowBuffer, Step } from "../../model/forward.ts";
import { pathOf } from "../../model/plan.ts";
import type { ModelShape } from "../../model/shape.ts";
import { concat } from "../arrays.ts";
import { advance, convolve, gatesOf } from "./delta.ts";
import type { SlotState } from "./memory.ts";
import { eachRow, type PassView } from "./pass-view.ts";
import { rmsNorm, silu } from "./tensors.ts";

/** The rows of a window in one linear layer, as `advance` takes them, and their raw qkv. */
interface LoggedLayer {
  readonly conv: readonly Float32Array[];
  readonly gates: readonly Float32Array[];
  readonly qkv: readonly Float32Array[];
}

/** What a window's keep needs, one entry a linear layer. */
export type WindowLog = LoggedLayer[];

export function convStep(pass: PassView, { module, linearLayer }: Step & { op: "conv" }): void {
  const weights = pass.tensors.delta(module);
  const depth = pass.shape.convTaps - 1;
  const qkv = pass.rows("qkv");
  eachRow(pass.plan, ({ segment, row, local }) => {
    const history = pass.memory.slots[segment.stateSlot]!.history[linearLayer]!;
    const path = pathOf(segment, local);
    const window = Array.from({ length: depth + 1 }, (_, tap) => {
      const back = path.length - 1 + tap - depth;
      return back >= 0
        ? qkv[segment.firstRow + path[back]!]!
        : historyRow(history, depth, back + depth);
    });
    convolve(pass.shape, weights, window, pass.rows("conv")[row]!);
    gatesOf(weights, pass.rows("b")[row]!, pass.rows("a")[row]!, pass.rows("gates")[row]!);
  });
}

/** Advances the chains' states; `logs` takes what the keeps of windows need. */
export function scanStep(
  pass: PassView,
  { linearLayer: layer }: Step & { op: "scan" },
  logs: Map<SlotId, WindowLog>,
): void {
  for (const { firstRow, rows, stateSlot, nextSlot, parents, window } of pass.plan.segments) {
    const rowsOf = (name: RowBuffer) => pass.rows(name).slice(firstRow, firstRow + rows);
    const logged = { conv: rowsOf("conv"), gates: rowsOf("gates"), qkv: rowsOf("qkv") };
    const from = pass.memory.slots[stateSlot]!;
    const states: Float32Array[] = [];
    rowsOf("delta").forEach((out, local) => {
      const parent = parents ? parents[local]! : local - 1;
      const before = states[parent] ?? from.state[layer]!;
      // A chain's states have one child each, which may have their memory.
      const state = parents || local === 0 ? before.slice() : before;
      advance(pass.shape, logged.conv[local]!, logged.gates[local]!, state, out);
      states.push(state);
    });
    if (window) {
      logWindow(logs, stateSlot, layer, logged);
      continue;
    }
    const to = pass.memory.slots[nextSlot]!;
    to.state[layer]!.set(states.at(-1)!);
    publish(from.history[layer]!, logged.qkv, to.history[layer]!);
  }
}

/** The row buffers are used again by the next layer. */
function logWindow(
  logs: Map<SlotId, WindowLog>,
  slot: SlotId,
  layer: number,
  { conv, gates, qkv }: LoggedLayer,
): void {
  const copies = (rows: readonly Float32Array[]) => rows.map((row) => row.slice());
  const log = logs.get(slot) ?? [];
  log[layer] = { conv: copies(conv), gates: copies(gates), qkv: copies(qkv) };
  logs.set(slot, log);
}

export function gatedNormStep(pass: PassView, step: Step & { op: "gatedNorm" }): void {
  const weight = pass.tensors.vector(step.weight);
  const width = pass.shape.linearValueDim;
  pass.rows("delta").forEach((delta, row) => {
    const z = pass.rows("z")[row]!;
    const mixed = pass.rows("mixed")[row]!;
    for (let at = 0; at < delta.length; at += width) {
      const out = mixed.subarray(at, at + width);
      rmsNorm(delta.subarray(at, at + width), weight, pass.shape.normEps, out);
      for (let i = 0; i < width; i++) out[i] = out[i]! * silu(z[at + i]!);
    }
  });
}

/** Commits a path of a window: the same steps on the slot's own state. */
export function commit(
  shape: ModelShape,
  slot: SlotState,
  log: WindowLog,
  path: readonly number[],
): void {
  const unused = new Float32Array(shape.linearValueHeads * shape.linearValueDim);
  log.forEach(({ conv, gates, qkv }, layer) => {
    for (const row of path) {
      advance(shape, conv[row]!, gates[row]!, slot.state[layer]!, unused);
    }
    const rows = path.map((row) => qkv[row]!);
    publish(slot.history[layer]!, rows, slot.history[layer]!);
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

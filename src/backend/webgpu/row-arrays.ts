import { bufferWidths, type RowBuffer } from "../../model/forward.ts";
import { derivedSizes, type ModelShape } from "../../model/shape.ts";
import type { BackendOptions } from "../backend.ts";
import {
  type Arithmetic,
  outputPlaces,
  paddedRows,
  roundUp,
  slicesOf,
} from "./projection-layout.ts";
import { tileRows } from "./tiles.ts";

/** Rows of floats, in a buffer of their own or beside others. */
export interface RowArray {
  readonly buffer: GPUBuffer;
  /** First float of row 0; a binding may begin there. */
  readonly offset: number;
  /** Floats from row to row. */
  readonly stride: number;
  /** Sums over parts of the input, which whoever reads them adds in order; 1 where rows are whole. */
  readonly slices: number;
  /** Floats from slice to slice. */
  readonly sliceStride: number;
}

/** What a projection reads, by the step that it belongs to. */
export type InputName = "normed" | "mixed" | "attended" | "activated" | "normedDraw";

/** The arrays with a row for each row of a pass, or for each that draws. */
export interface RowArrays {
  readonly rows: ReadonlyMap<RowBuffer, RowArray>;
  /** Laid out as projections read them (pass.wgsl inputAt). */
  readonly inputs: ReadonlyMap<InputName, RowArray>;
  /**
   * By the input of the projection: what it adds to the residual stream. Empty where projections add
   * it themselves (f32); else the next norm does.
   */
  readonly updates: ReadonlyMap<InputName, RowArray>;
}

/** Buffers between steps that are one kernel here, and those that are inputs. */
const elsewhere: ReadonlySet<RowBuffer> = new Set([
  "conv",
  "gates",
  "delta",
  "normed",
  "mixed",
  "attended",
  "normedDraw",
]);

/** Places every array; `create` takes bytes. */
export async function placeRows(
  create: (label: string, bytes: number) => Promise<GPUBuffer>,
  options: BackendOptions,
  arithmetic: Arithmetic,
): Promise<RowArrays> {
  const { shape } = options.weights;
  const f16 = arithmetic === "f16";
  const count = (name: string) => {
    const most = name === "logits" || name === "normedDraw" ? options.drawsMax : options.rowsMax;
    return f16 ? paddedRows(most) : most;
  };
  const rows = new Map<RowBuffer, RowArray>();
  const places = outputPlaces(shape);
  const groups = new Map<number, RowArray>();
  for (const [name, width] of Object.entries(bufferWidths(shape)) as [RowBuffer, number][]) {
    if (elsewhere.has(name)) continue;
    const place = places.get(name);
    if (!place) {
      rows.set(name, whole(await create(name, 4 * count(name) * width), width));
      continue;
    }
    const { group, offset, stride } = place;
    // Logits are read back as they are.
    const slices = f16 && name !== "logits" ? slicesOf(stride, shape.hiddenSize) : 1;
    const sliceStride = count(name) * stride;
    const shared = groups.get(group) ?? whole(await create(name, 4 * slices * sliceStride), stride);
    groups.set(group, shared);
    rows.set(name, { ...shared, offset, slices, sliceStride });
  }
  const inputs = new Map<InputName, RowArray>();
  for (const [name, width] of Object.entries(inputWidths(shape)) as [InputName, number][]) {
    const stride = roundUp(width, f16 ? 64 : 1024);
    const bytes = (f16 ? 2 : 4) * count(name) * stride;
    inputs.set(name, whole(await create(name, bytes), stride));
  }
  const updates = f16 ? await placeUpdates(create, shape, count("update")) : new Map();
  return { rows, inputs, updates };
}

async function placeUpdates(
  create: (label: string, bytes: number) => Promise<GPUBuffer>,
  shape: ModelShape,
  count: number,
): Promise<RowArrays["updates"]> {
  const widths = inputWidths(shape);
  const stride = roundUp(shape.hiddenSize, tileRows);
  const names = ["mixed", "attended", "activated"] as const;
  const slices = names.map((name) => slicesOf(stride, widths[name]));
  const sliceStride = count * stride;
  const bytes = 4 * Math.max(...slices) * sliceStride;
  const shared = whole(await create("updates", bytes), stride);
  return new Map(
    names.map((name, index) => [name, { ...shared, slices: slices[index]!, sliceStride }]),
  );
}

function inputWidths(shape: ModelShape): Readonly<Record<InputName, number>> {
  const { valueDim, attentionDim } = derivedSizes(shape);
  return {
    normed: shape.hiddenSize,
    mixed: valueDim,
    attended: attentionDim,
    activated: shape.intermediateSize,
    normedDraw: shape.hiddenSize,
  };
}

function whole(buffer: GPUBuffer, stride: number): RowArray {
  return { buffer, offset: 0, stride, slices: 1, sliceStride: 0 };
}

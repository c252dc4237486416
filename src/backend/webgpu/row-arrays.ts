import { type DrafterShape, drafterSizes } from "../../model/drafter-shape.ts";
import { bufferWidths, isDrawBuffer, type RowBuffer } from "../../model/forward.ts";
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
export type InputName =
  | "normed"
  | "mixed"
  | "attended"
  | "activated"
  | "normedDraw"
  | "features"
  | "context"
  | "draftMixed"
  | "draftAttended"
  | "draftActivated";

/** The arrays with a row for each row of a pass, or for each that draws. */
export interface RowArrays {
  readonly rows: ReadonlyMap<RowBuffer, RowArray>;
  /** Laid out as projections read them (pass.wgsl inputAt). */
  readonly inputs: ReadonlyMap<InputName, RowArray>;
  /**
   * By the input of the projection: what it adds to the residual stream, or a drafter's sublayer makes.
   * Empty where projections write whole rows (f32); else the next norm adds.
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
  "features",
  "context",
  "draftMixed",
  "draftAttended",
]);

/**
 * In whose memory an array lies that the target's passes never need at once with that one. All are
 * written before they are read.
 */
const lodgings: Partial<Record<RowBuffer | InputName, string>> = {
  fused: "updates",
  draftOut: "updates",
  context: "normed",
  contextKeys: "gate",
  draftGate: "gate",
  draftQuery: "queryGate",
  draftRotated: "query",
};

/** Rows of the largest draft pass: each stream's block. */
export const draftRowsMax = ({ slots, rowsMax }: BackendOptions, drafter: DrafterShape): number =>
  Math.min(rowsMax, slots * drafter.blockRows);

/** Buffers by label, each as long as the longest that was asked for. */
class Lodgings {
  readonly #bytes = new Map<string, number>();
  readonly #buffers = new Map<string, GPUBuffer>();

  ask(label: string, bytes: number): string {
    this.#bytes.set(label, Math.max(bytes, this.#bytes.get(label) ?? 0));
    return label;
  }

  async take(create: (label: string, bytes: number) => Promise<GPUBuffer>): Promise<void> {
    for (const [label, bytes] of this.#bytes) this.#buffers.set(label, await create(label, bytes));
  }

  /** The arrays, in the memory whose label they have for a buffer. */
  in<Name>(places: ReadonlyMap<Name, Place>): ReadonlyMap<Name, RowArray> {
    const entries = [...places].map(([name, place]) => {
      const array = { ...place, buffer: this.#buffers.get(place.buffer)! };
      return [name, array] as const;
    });
    return new Map(entries);
  }
}

/** A row array before there is memory: `buffer` is its label. */
type Place = Omit<RowArray, "buffer"> & { readonly buffer: string };

/** Places every array; `create` takes bytes. */
export async function placeRows(
  create: (label: string, bytes: number) => Promise<GPUBuffer>,
  options: BackendOptions,
  arithmetic: Arithmetic,
): Promise<RowArrays> {
  const { shape } = options.weights;
  const drafter = options.drafter?.weights.shape ?? null;
  const f16 = arithmetic === "f16";
  const memory = new Lodgings();
  const count = (name: RowBuffer | InputName) => {
    const most = rowsOf(name, options, drafter);
    return f16 ? paddedRows(most) : most;
  };
  const rows = new Map<RowBuffer, Place>();
  const places = outputPlaces(shape, drafter);
  for (const [name, width] of bufferWidths(shape, drafter)) {
    if (elsewhere.has(name) || (f16 && name === "draftOut")) continue;
    const place = places.get(name);
    if (!place) {
      const label = memory.ask(lodgings[name] ?? name, 4 * count(name) * width);
      rows.set(name, whole(label, width));
      continue;
    }
    const { group, offset, stride } = place;
    const cols = name === "fused" ? drafterSizes(drafter!).featureDim : shape.hiddenSize;
    // Logits and what scores candidates are read back as they are.
    const slices = f16 && !isDrawBuffer(name) ? slicesOf(stride, cols) : 1;
    const sliceStride = count(name) * stride;
    const buffer = memory.ask(lodgings[group] ?? group, 4 * slices * sliceStride);
    rows.set(name, { buffer, offset, stride, slices, sliceStride });
  }
  const widths = inputWidths(shape, drafter);
  const inputs = new Map<InputName, Place>();
  for (const [name, width] of widths) {
    const stride = roundUp(width, f16 ? 64 : 1024);
    const bytes = (f16 ? 2 : 4) * count(name) * stride;
    inputs.set(name, whole(memory.ask(lodgings[name] ?? name, bytes), stride));
  }
  const updates = new Map<InputName, Place>();
  for (const name of f16 ? updateInputs : []) {
    const cols = widths.get(name);
    if (cols === undefined) continue;
    const stride = roundUp(shape.hiddenSize, tileRows);
    const slices = slicesOf(stride, cols);
    const sliceStride = count(name) * stride;
    const buffer = memory.ask("updates", 4 * slices * sliceStride);
    updates.set(name, { buffer, offset: 0, stride, slices, sliceStride });
  }
  await memory.take(create);
  return { rows: memory.in(rows), inputs: memory.in(inputs), updates: memory.in(updates) };
}

/** Inputs of the projections that end a sublayer. */
const updateInputs = [
  "mixed",
  "attended",
  "activated",
  "draftAttended",
  "draftActivated",
] as const satisfies readonly InputName[];

function rowsOf(
  name: RowBuffer | InputName,
  options: BackendOptions,
  drafter: DrafterShape | null,
): number {
  if (isDrawBuffer(name as RowBuffer)) return options.drawsMax;
  return drafter && name.startsWith("draft") ? draftRowsMax(options, drafter) : options.rowsMax;
}

function inputWidths(
  shape: ModelShape,
  drafter: DrafterShape | null,
): ReadonlyMap<InputName, number> {
  const { valueDim, attentionDim } = derivedSizes(shape);
  const { hiddenSize, intermediateSize } = shape;
  const widths = new Map<InputName, number>([
    ["normed", hiddenSize],
    ["mixed", valueDim],
    ["attended", attentionDim],
    ["activated", intermediateSize],
    ["normedDraw", hiddenSize],
  ]);
  if (drafter) {
    const sizes = drafterSizes(drafter);
    widths.set("features", sizes.featureDim);
    widths.set("context", hiddenSize);
    if (drafter.convolution) widths.set("draftMixed", hiddenSize);
    widths.set("draftAttended", sizes.attentionDim);
    widths.set("draftActivated", drafter.intermediateSize);
  }
  return widths;
}

const whole = (buffer: string, stride: number): Place => ({
  buffer,
  offset: 0,
  stride,
  slices: 1,
  sliceStride: 0,
});

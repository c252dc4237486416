import { pageRows } from "../../limits.ts";
import { bufferWidths, type RowBuffer } from "../../model/forward.ts";
import { derivedSizes } from "../../model/shape.ts";
import type { BackendOptions, MemoryUse } from "../backend.ts";
import type { DeviceMemory } from "./device.ts";
import { passWords } from "./pass.ts";

/** Rows of floats in a buffer of their own. */
export interface RowArray {
  readonly buffer: GPUBuffer;
  /** Floats from row to row. */
  readonly stride: number;
}

/** Everything on the device but weights and instructions. */
export interface Places {
  readonly rows: ReadonlyMap<RowBuffer, RowArray>;
  /** The MLP's input to down_proj: gate and up, combined and permuted. */
  readonly activated: RowArray;
  readonly taps: readonly GPUBuffer[];
  readonly states: readonly GPUBuffer[];
  readonly histories: readonly GPUBuffer[];
  readonly keys: readonly GPUBuffer[];
  readonly values: readonly GPUBuffer[];
  readonly pass: GPUBuffer;
  readonly results: GPUBuffer;
  /** A slot's latest kept logits row. */
  readonly keptLogits: GPUBuffer;
  readonly memory: Omit<MemoryUse, "weightBytes">;
}

/** Buffers that projections read: permuted, in whole steps of 1024 columns. */
const projected: ReadonlySet<RowBuffer> = new Set(["normed", "mixed", "attended", "normedDraw"]);

export async function placeAll(memory: DeviceMemory, options: BackendOptions): Promise<Places> {
  const { slots, pages, rowsMax, drawsMax, taps } = options;
  const { shape } = options.weights;
  const sizes = derivedSizes(shape);
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const create = (label: string, floats: number) => memory.create(label, 4 * floats, usage);
  const many = async (label: string, count: number, floats: number) => {
    const buffers: GPUBuffer[] = [];
    for (let index = 0; index < count; index++) {
      buffers.push(await create(`${label} ${index}`, floats));
    }
    return buffers;
  };
  const start = memory.bytes;
  const states = await many("state", sizes.linearLayers, slots * sizes.stateFloats);
  const histories = await many("history", sizes.linearLayers, slots * sizes.historyFloats);
  const stateBytes = memory.bytes - start;
  const pageFloats = shape.kvHeadCount * pageRows * shape.headDim;
  const keys = await many("keys", sizes.fullLayers, pages * pageFloats);
  const values = await many("values", sizes.fullLayers, pages * pageFloats);
  const kvBytes = memory.bytes - start - stateBytes;
  const rows = new Map<RowBuffer, RowArray>();
  for (const [name, width] of Object.entries(bufferWidths(shape)) as [RowBuffer, number][]) {
    const count = name === "logits" || name === "normedDraw" ? drawsMax : rowsMax;
    const stride = Math.ceil(width / 4) * 4;
    const whole = projected.has(name) ? Math.ceil(width / 1024) * 1024 : stride;
    rows.set(name, { buffer: await create(name, count * whole), stride: whole });
  }
  const activatedStride = Math.ceil(shape.intermediateSize / 1024) * 1024;
  const activated = {
    buffer: await create("activated", rowsMax * activatedStride),
    stride: activatedStride,
  };
  const places = {
    rows,
    activated,
    taps: await many("tap", taps.length, rowsMax * shape.hiddenSize),
    states,
    histories,
    keys,
    values,
    pass: await create("pass", passWords(options)),
    results: await create("results", 4 * drawsMax),
    keptLogits: await create("kept logits", slots * shape.vocabSize),
  };
  const workspaceBytes = memory.bytes - start - stateBytes - kvBytes;
  return { ...places, memory: { stateBytes, kvBytes, workspaceBytes } };
}

import { MemoryError, type MemorySentence } from "../../errors.ts";
import { pageRows } from "../../limits.ts";
import { matrixPaths } from "../../model/forward.ts";
import { drafterMatrixRoles } from "../../weights/drafter-roles.ts";
import { type BufferSource, bufferBytes } from "./device-memory.ts";
import { matrixBytes } from "./matrices.ts";
import { type PlaceOptions, placeAll } from "./places.ts";
import { tileBytes } from "./tiles.ts";

/** What a device can hold. */
export interface Room {
  /** All buffers together. */
  readonly bytes: number;
  /** One buffer, which is bound whole. */
  readonly bufferBytes: number;
}

/** The room that a device's limits leave; how much memory it has, WebGPU doesn't tell. */
export const roomOf = (
  { maxBufferSize, maxStorageBufferBindingSize }: GPUSupportedLimits,
  bytes: number,
): Room => ({ bytes, bufferBytes: Math.min(maxBufferSize, maxStorageBufferBindingSize) });

/**
 * Refuses what can't fit before any of it is taken.
 * @throws MemoryError with both numbers and what would fit
 */
export async function checkFit(options: PlaceOptions, room: Room): Promise<void> {
  const need = await needOf(options, room);
  if (fits(need, room)) return;
  const hint = await whatFits(options, room);
  if (need.bytes > room.bytes) throw new MemoryError(need.bytes, room.bytes, hint);
  const sentence: MemorySentence = (needed, most) =>
    `"${need.widest.label}" would be one buffer of ${needed}, and this device binds at most ${most}.`;
  throw new MemoryError(need.widest.bytes, room.bufferBytes, hint, sentence);
}

/** What to tell where the device gave `room` and no more. */
export async function wasRefused(options: PlaceOptions, room: Room): Promise<MemoryError> {
  const need = await needOf(options, room);
  if (need.bytes > room.bytes) {
    return new MemoryError(need.bytes, room.bytes, await whatFits(options, room));
  }
  // Only vectors were left, which the need leaves out.
  const hint = "That was almost enough: end what else uses the GPU, or take a smaller context.";
  const sentence: MemorySentence = (_, given) => `The device gave ${given} and refused more.`;
  return new MemoryError(need.bytes, room.bytes, hint, sentence);
}

interface Need {
  /** Beside norms and other vectors, which are small. */
  readonly bytes: number;
  /** The largest buffer; matrices don't count, because they are split. */
  readonly widest: { readonly label: string; readonly bytes: number };
}

/** Adds up what would be taken. */
class Sum implements BufferSource {
  bytes = 0;
  widest: Need["widest"] = { label: "", bytes: 0 };
  readonly bufferBytesMax: number;

  constructor({ bufferBytes: most }: Room) {
    this.bufferBytesMax = most;
  }

  async create(label: string, bytes: number): Promise<GPUBuffer> {
    const size = bufferBytes(bytes);
    this.bytes += size;
    if (size > this.widest.bytes) this.widest = { label, bytes: size };
    // Nobody looks at it: what was placed is thrown away.
    return {} as GPUBuffer;
  }
}

async function needOf(options: PlaceOptions, room: Room): Promise<Need> {
  const sum = new Sum(room);
  await placeAll(sum, options);
  return { bytes: sum.bytes + weightBytesOf(options), widest: sum.widest };
}

function weightBytesOf({ weights, drafter, arithmetic }: PlaceOptions): number {
  const bytesOf = arithmetic === "f16" ? tileBytes : matrixBytes;
  // A tied head is the embedding once more.
  const matrices = new Set(matrixPaths(weights.shape).map((path) => weights.matrix(path)));
  const roles = drafter ? drafterMatrixRoles(drafter.weights.shape) : [];
  for (const { path } of roles) matrices.add(drafter!.weights.matrix(path));
  return [...matrices].reduce((sum, matrix) => sum + bytesOf(matrix), 0);
}

const fits = ({ bytes, widest }: Need, room: Room): boolean =>
  bytes <= room.bytes && widest.bytes <= room.bufferBytes;

async function whatFits(options: PlaceOptions, room: Room): Promise<string> {
  const all = await contextThatFits(options, options.slots, room);
  const one = options.slots > 1 ? await contextThatFits(options, 1, room) : 0;
  const choices = [
    ...(all > 0 ? [`a context of ${all} tokens`] : []),
    ...(one > all ? [`one slot with a context of ${one} tokens`] : []),
  ];
  if (choices.length > 0) return `What would fit: ${choices.join(", or ")}.`;
  return "No context is small enough: take a smaller model, or one of fewer bits.";
}

/** The most tokens, up to those asked for, that every slot could have; 0 where not even a page fits. */
async function contextThatFits(options: PlaceOptions, slots: number, room: Room): Promise<number> {
  let known = 0;
  let over = Math.floor(options.pages / options.slots) + 1;
  while (over - known > 1) {
    const pages = Math.floor((known + over) / 2);
    if (fits(await needOf({ ...options, slots, pages: pages * slots }, room), room)) known = pages;
    else over = pages;
  }
  return known * pageRows;
}

import { MemoryError, type MemorySentence, memoryText, modelSentence } from "../../errors.ts";
import type { MemoryUse, PlannedMemory } from "../backend.ts";
import { sumOf } from "../memory-use.ts";
import { type Fits, whatFits } from "../what-fits.ts";
import { type BufferSource, bufferBytes } from "./device-memory.ts";
import { type PlaceOptions, placeAll } from "./places.ts";
import { placeWeights } from "./weight-places.ts";

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

/** What would be taken, and whether there is room for it. */
export async function planMemory(options: PlaceOptions, room: Room): Promise<PlannedMemory> {
  const need = await needOf(options, room);
  const short = shortOf(need, room);
  return { memory: need.memory, refusal: short && memoryText(...short) };
}

/**
 * Refuses what can't fit before any of it is taken.
 * @throws MemoryError with both numbers and what would fit
 */
export async function checkFit(options: PlaceOptions, room: Room): Promise<void> {
  const short = shortOf(await needOf(options, room), room);
  if (short) throw await refusalOf(options, room, short);
}

/** What to tell where the device gave `room` and no more. */
export async function wasRefused(options: PlaceOptions, room: Room): Promise<MemoryError> {
  const { memory } = await needOf(options, room);
  return await refusalOf(options, room, [sumOf(memory), room.bytes, modelSentence]);
}

interface Need {
  readonly memory: MemoryUse;
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
  const places = await placeAll(sum, options);
  const { bytes, widest } = sum;
  await placeWeights(sum, options, places.arrays);
  return { memory: { weightBytes: sum.bytes - bytes, ...places.memory }, widest };
}

/** What is needed of something, the most that there is of it, and how to say so. */
type Short = readonly [needed: number, most: number, sentence: MemorySentence];

/** Null where all fits. */
function shortOf({ memory, widest }: Need, room: Room): Short | null {
  const bytes = sumOf(memory);
  if (bytes > room.bytes) return [bytes, room.bytes, modelSentence];
  if (widest.bytes <= room.bufferBytes) return null;
  const sentence: MemorySentence = (needed, most) =>
    `"${widest.label}" would be one buffer of ${needed}, and this device binds at most ${most}.`;
  return [widest.bytes, room.bufferBytes, sentence];
}

async function refusalOf(
  options: PlaceOptions,
  room: Room,
  [needed, most, sentence]: Short,
): Promise<MemoryError> {
  const fits: Fits = async (sizes) => !shortOf(await needOf({ ...options, ...sizes }, room), room);
  return new MemoryError(needed, most, await whatFits(options, fits), sentence);
}

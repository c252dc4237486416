import { MemoryError, type MemorySentence, memoryText, modelSentence } from "../../errors.ts";
import type { BackendOptions, BackendPlanner, MemoryUse } from "../backend.ts";
import { sumOf } from "../memory-use.ts";
import { type Fits, whatFits } from "../what-fits.ts";
import { Arena, arenaBytesMax } from "./arena.ts";
import { type FarMemory, WeightMemories } from "./far.ts";
import { ACTIVATIONS_F32, ACTIVATIONS_INT8, ARENA_START } from "./layout.ts";
import { type Places, placeAll, scratchBytes } from "./places.ts";
import { buildProgram, type Program } from "./program.ts";
import { checkShapes } from "./support.ts";

/** How a wasm backend computes. */
export interface WasmChoice {
  readonly threads: number;
  readonly activations: "f32" | "int8";
  /** What a memory may hold, for tests; absent: as much as there is. */
  readonly arenaBytes?: number;
}

/** A backend's memory before it is taken: where everything will lie, and what it comes to. */
export interface PlacedBackend {
  readonly arena: Arena;
  /** All arenas, this one first. */
  readonly arenas: readonly Arena[];
  readonly far: readonly FarMemory[];
  readonly places: Places;
  readonly program: Program;
  /** The sum is the memory to the byte: what is reserved, and lost to whole pages, is workspace. */
  readonly memory: MemoryUse;
}

/** @throws InputError for a shape that the kernels don't take */
export function placeBackend(options: BackendOptions, choice: WasmChoice): PlacedBackend {
  checkShapes(options.weights.shape, options.drafter?.weights.shape ?? null);
  const arena = new Arena(ARENA_START);
  const places = placeAll(arena, options, choice.threads);
  const before = arena.bytes;
  const scratch = scratchBytes(places.widths);
  const memories = new WeightMemories(arena, choice.threads, scratch, choice.arenaBytes);
  const kind = choice.activations === "int8" ? ACTIVATIONS_INT8 : ACTIVATIONS_F32;
  const program = buildProgram(arena, memories, options, places, kind);
  const arenas = memories.close();
  const weightBytes = arena.bytes - before + memories.farBytes;
  const { stateBytes, kvBytes } = places.memory;
  const allBytes = arenas.reduce((bytes, { memoryBytes }) => bytes + memoryBytes, 0);
  const workspaceBytes = allBytes - weightBytes - stateBytes - kvBytes;
  const memory = { weightBytes, stateBytes, kvBytes, workspaceBytes };
  return { arena, arenas, far: memories.far, places, program, memory };
}

/**
 * Refuses what can't fit before any of it is taken.
 * @throws MemoryError with both numbers and what would fit
 */
export async function checkFit(
  placed: PlacedBackend,
  options: BackendOptions,
  choice: WasmChoice,
): Promise<void> {
  const short = shortOf(placed, options);
  if (!short) return;
  const fits: Fits = async (sizes) => !shortOf(placeBackend(sizes, choice), options);
  const [needed, most, sentence] = short;
  throw new MemoryError(needed, most, await whatFits(options, fits), sentence);
}

/**
 * Plans by placing.
 * @param machineBytes what this machine's memory has for a backend; null: nobody knows
 */
export const wasmPlanner = (choice: WasmChoice, machineBytes: number | null): BackendPlanner => ({
  device: deviceText(choice),
  roomBytes: machineBytes,
  async plan(sizes) {
    const placed = placeBackend(sizes, choice);
    const short = shortOf(placed, sizes);
    return { memory: placed.memory, refusal: short && memoryText(...short) };
  },
});

/** What it runs on, for people. */
export const deviceText = ({ threads }: WasmChoice): string =>
  `${threads} thread${threads === 1 ? "" : "s"}`;

const arenaSentence: MemorySentence = (needed, most) =>
  `The model needs ${needed}, matrices not counted, and a WebAssembly memory holds at most ${most}.`;

/** What is needed, the most that there is, and how to say so; null where it fits. */
function shortOf(
  { arena, memory }: PlacedBackend,
  { memoryBytesMax = Number.POSITIVE_INFINITY }: BackendOptions,
): readonly [needed: number, most: number, sentence: MemorySentence] | null {
  const bytes = sumOf(memory);
  if (bytes > memoryBytesMax) return [bytes, memoryBytesMax, modelSentence];
  const near = arena.memoryBytes;
  return near > arenaBytesMax ? [near, arenaBytesMax, arenaSentence] : null;
}

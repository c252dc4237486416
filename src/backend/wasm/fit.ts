import { MemoryError, type MemorySentence, memoryText, modelSentence } from "../../errors.ts";
import type { BackendOptions, BackendPlanner, MemoryUse } from "../backend.ts";
import { sumOf } from "../memory-use.ts";
import { type Fits, whatFits } from "../what-fits.ts";
import { Arena, arenaBytesMax } from "./arena.ts";
import { ACTIVATIONS_F32, ACTIVATIONS_INT8, ARENA_START, READ_AHEAD } from "./layout.ts";
import { type Places, placeAll } from "./places.ts";
import { buildProgram, type Program } from "./program.ts";
import { checkShapes } from "./support.ts";

/** How a wasm backend computes. */
export interface WasmChoice {
  readonly threads: number;
  readonly activations: "f32" | "int8";
}

/** A backend's memory before it is taken: where everything will lie, and what it comes to. */
export interface PlacedBackend {
  readonly arena: Arena;
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
  const kind = choice.activations === "int8" ? ACTIVATIONS_INT8 : ACTIVATIONS_F32;
  const program = buildProgram(arena, options, places, kind);
  // Behind the last weights (kernels/read-ahead.ts).
  arena.place(2 * READ_AHEAD);
  const weightBytes = arena.bytes - before;
  const { stateBytes, kvBytes } = places.memory;
  const workspaceBytes = arena.memoryBytes - weightBytes - stateBytes - kvBytes;
  return { arena, places, program, memory: { weightBytes, stateBytes, kvBytes, workspaceBytes } };
}

/**
 * Refuses what can't fit before any of it is taken.
 * @throws MemoryError with both numbers and what would fit
 */
export async function checkFit(
  { memory }: PlacedBackend,
  options: BackendOptions,
  choice: WasmChoice,
): Promise<void> {
  const short = shortOf(memory, options);
  if (!short) return;
  const fits: Fits = async (sizes) => !shortOf(placeBackend(sizes, choice).memory, options);
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
    const { memory } = placeBackend(sizes, choice);
    const short = shortOf(memory, sizes);
    return { memory, refusal: short && memoryText(...short) };
  },
});

/** What it runs on, for people. */
export const deviceText = ({ threads }: WasmChoice): string =>
  `${threads} thread${threads === 1 ? "" : "s"}`;

const arenaSentence: MemorySentence = (needed, most) =>
  `The model needs ${needed}, and a WebAssembly memory holds at most ${most}.`;

/** What is needed, the most that there is, and how to say so; null where it fits. */
function shortOf(
  memory: MemoryUse,
  { memoryBytesMax = Number.POSITIVE_INFINITY }: BackendOptions,
): readonly [needed: number, most: number, sentence: MemorySentence] | null {
  const bytes = sumOf(memory);
  if (bytes > memoryBytesMax) return [bytes, memoryBytesMax, modelSentence];
  return bytes > arenaBytesMax ? [bytes, arenaBytesMax, arenaSentence] : null;
}

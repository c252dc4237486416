import { systemClock } from "../../clock.ts";
import { Arena } from "./arena.ts";
import { ARENA_START, INSTRUCTION_BYTES, OP_READ, PASS_BYTES, STEP_BYTES } from "./layout.ts";
import type { WasmPlatform } from "./platform.ts";
import { ThreadPool } from "./pool.ts";
import { probeKernels } from "./probe.ts";

/** More than any cache. */
const bytes = 256 * 2 ** 20;

/** How fast threads read memory together. */
export interface ReadBandwidth {
  readonly bytes: number;
  readonly samples: number;
  readonly medianBytesPerSecond: number;
  readonly bestBytesPerSecond: number;
}

/** Reads 256 MiB as often as there are samples. It takes that much memory for the while. */
export async function measureReadBandwidth(
  platform: WasmPlatform,
  threads: number,
  samples = 7,
): Promise<ReadBandwidth> {
  const { module } = await probeKernels(platform);
  const arena = new Arena(ARENA_START);
  const pass = arena.place(PASS_BYTES);
  const counters = arena.place(2 * STEP_BYTES);
  const scratches = Array.from({ length: threads }, () => arena.place(16));
  const data = arena.place(bytes);
  const padding = new Array<number>(INSTRUCTION_BYTES / 4 - 4).fill(0);
  const program = arena.placeU32([OP_READ, 0, data, bytes, ...padding]);
  await arena.fill();
  // Pages that were never written are all one page of zeros.
  arena.u32(data, bytes / 4).fill(1);
  arena.u32(pass, 1)[0] = 1;
  const setup = { module, program, instructions: 1, counters, pass, wide: false };
  const pool = await ThreadPool.start(platform, arena, setup, scratches);
  const rates: number[] = [];
  // The first runs are slower than any other: the code isn't optimised yet.
  for (let sample = -2; sample < samples; sample++) {
    const begin = systemClock.nowMs();
    await pool.run(() => {});
    if (sample >= 0) rates.push((1000 * bytes) / (systemClock.nowMs() - begin));
  }
  await pool.stop();
  rates.sort((a, b) => a - b);
  return {
    bytes,
    samples,
    medianBytesPerSecond: rates[Math.floor(samples / 2)]!,
    bestBytesPerSecond: rates[samples - 1]!,
  };
}

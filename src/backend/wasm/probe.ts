import { systemClock } from "../../clock.ts";
import { CONTROL_BASE } from "./layout.ts";
import { instantiate, type KernelExports, type WasmPlatform } from "./platform.ts";

/** Enough calls for the engine to have replaced its baseline code by optimised code. */
const probeRounds = 40;
/** Multiply-adds that `probeMadd` makes. */
const probeMadds = 2048;
/** How long to look for the faster way to add, and how often each is called between two looks at the clock. */
const speedMs = 30;
const speedTimes = 100;

export interface ProbedKernels {
  readonly module: WebAssembly.Module;
  readonly relaxed: boolean;
  /** Whether a·b + c is rounded once. */
  readonly fused: boolean;
  /** Of an instance to try things with. */
  readonly exports: KernelExports;
}

/**
 * Chooses the kernels: relaxed SIMD where the engine has it and a self-test finds it right and steady.
 * Node 20's baseline compiler, for one, gets the relaxed dot product wrong until the code is hot
 * (`docs/adr/0004-relaxed-simd.md`), so the test runs long enough to see both.
 */
export async function probeKernels(platform: WasmPlatform): Promise<ProbedKernels> {
  const relaxedBytes = await platform.kernels(true);
  if (WebAssembly.validate(relaxedBytes)) {
    const module = await WebAssembly.compile(relaxedBytes);
    const exports = await instantiate(module, probeMemory());
    const fused = selfTest(exports);
    if (fused !== null) return { module, relaxed: true, fused, exports };
  }
  const module = await WebAssembly.compile(await platform.kernels(false));
  return {
    module,
    relaxed: false,
    fused: false,
    exports: await instantiate(module, probeMemory()),
  };
}

const probeMemory = (): WebAssembly.Memory =>
  new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true });

/** Whether multiply-add is fused, or null where relaxed arithmetic is wrong or changes its mind. */
function selfTest(kernels: KernelExports): boolean | null {
  const fused = kernels.probeMadd();
  if (fused !== 0 && fused !== probeMadds) return null;
  for (let round = 0; round < probeRounds; round++) {
    if (kernels.probeMadd() !== fused || kernels.probeDot() !== 0) return null;
  }
  return fused === probeMadds;
}

/**
 * Whether integer products are added faster in 32 bits than in 16. Times both by turns, for long enough that the
 * engine has optimised them.
 */
export function isWideFaster({ relaxed, exports }: ProbedKernels): boolean {
  if (!relaxed) return false;
  const least = { narrow: Number.POSITIVE_INFINITY, wide: Number.POSITIVE_INFINITY };
  const end = systemClock.nowMs() + speedMs;
  for (let now = systemClock.nowMs(); now < end; ) {
    for (const kind of ["narrow", "wide"] as const) {
      exports.probeSpeed(kind === "wide", CONTROL_BASE, speedTimes);
      const after = systemClock.nowMs();
      least[kind] = Math.min(least[kind], after - now);
      now = after;
    }
  }
  return least.wide < least.narrow;
}

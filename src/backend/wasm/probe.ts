import { instantiate, type WasmPlatform } from "./platform.ts";

/** Enough calls for the engine to have replaced its baseline code by optimised code. */
const probeRounds = 40;
/** Multiply-adds that `probeMadd` makes. */
const probeMadds = 2048;

export interface ProbedKernels {
  readonly module: WebAssembly.Module;
  readonly relaxed: boolean;
  /** Whether a·b + c is rounded once. */
  readonly fused: boolean;
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
    const fused = await selfTest(module);
    if (fused !== null) return { module, relaxed: true, fused };
  }
  const module = await WebAssembly.compile(await platform.kernels(false));
  return { module, relaxed: false, fused: false };
}

/** Whether multiply-add is fused, or null where relaxed arithmetic is wrong or changes its mind. */
async function selfTest(module: WebAssembly.Module): Promise<boolean | null> {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true });
  const kernels = await instantiate(module, memory);
  const fused = kernels.probeMadd();
  if (fused !== 0 && fused !== probeMadds) return null;
  for (let round = 0; round < probeRounds; round++) {
    if (kernels.probeMadd() !== fused || kernels.probeDot() !== 0) return null;
  }
  return fused === probeMadds;
}

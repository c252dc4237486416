import { invariant } from "../../errors.ts";
import type { Instruction, PassCounts } from "./program.ts";

/** One dispatch with everything decided. */
interface Dispatch {
  readonly pipeline: GPUComputePipeline;
  readonly bindGroup: GPUBindGroup;
  readonly size: readonly [number, number, number];
}

/** Sizes of passes whose dispatches are remembered; rounds come in few. */
const rememberedMax = 64;

/** Everything in the counts that an instruction may look at. */
export function keyOf(counts: PassCounts): string {
  const { rows, draws, segments, top, attention, scans, moves } = counts;
  const { blocks, blockRows, span, units } = attention;
  const cut = [blocks.length, blockRows, span, units];
  return [rows, draws, segments, top, ...cut, scans, moves].join(" ");
}

/** What instructions come to for a pass's counts, worked out once for each. */
export class Dispatches {
  readonly #instructions: readonly Instruction[];
  readonly #workgroupsMax: number;
  readonly #known = new Map<string, readonly Dispatch[]>();

  constructor(instructions: readonly Instruction[], device: GPUDevice) {
    this.#instructions = instructions;
    this.#workgroupsMax = device.limits.maxComputeWorkgroupsPerDimension;
  }

  of(counts: PassCounts): readonly Dispatch[] {
    const key = keyOf(counts);
    const known = this.#known.get(key);
    if (known) return known;
    if (this.#known.size >= rememberedMax) this.#known.clear();
    const dispatches = this.#instructions.flatMap((instruction) => {
      const size = instruction.size(counts);
      const [x, y, z] = size;
      const most = Math.max(x, y, z);
      invariant(most <= this.#workgroupsMax, `a dispatch of ${x} × ${y} × ${z} workgroups`);
      if (x * y * z === 0) return [];
      return [
        { pipeline: instruction.kernel(counts).pipeline, bindGroup: instruction.bindGroup, size },
      ];
    });
    this.#known.set(key, dispatches);
    return dispatches;
  }
}

/** Encodes dispatches into a pass. */
export function encodeDispatches(
  pass: GPUComputePassEncoder,
  dispatches: readonly Dispatch[],
): void {
  let current: GPUComputePipeline | null = null;
  for (const { pipeline, bindGroup, size } of dispatches) {
    if (pipeline !== current) pass.setPipeline(pipeline);
    current = pipeline;
    pass.setBindGroup(0, bindGroup);
    // Not spread: this runs hundreds of times a round.
    pass.dispatchWorkgroups(size[0], size[1], size[2]);
  }
}

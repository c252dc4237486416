import { Dispatches, encodeDispatches, keyOf } from "./dispatches.ts";
import type { Instruction, PassCounts } from "./program.ts";

/** Dispatches of a pass's first submit: few, because the GPU waits for it. The next ones have three times as many. */
const firstDispatches = 8;
/** Dispatches of a submit at most: fewer cost more submits, more let the GPU wait for the host. */
const partDispatches = 96;
/** Passes that are kept encoded; a large model's takes about half a MiB. */
const preparedMax = 8;

/**
 * Encodes passes and submits them. What their commands hold depends on a pass's counts alone (all else is
 * in the buffer that kernels read it from), so that those of a likely pass can be encoded before it comes.
 */
export class PassCommands {
  readonly #device: GPUDevice;
  readonly #dispatches: Dispatches;
  /** By their counts, the one that was likely longest ago first. */
  readonly #prepared = new Map<string, readonly GPUCommandBuffer[]>();

  constructor(instructions: readonly Instruction[], device: GPUDevice) {
    this.#device = device;
    this.#dispatches = new Dispatches(instructions, device);
  }

  /** How many dispatches such a pass takes. */
  dispatches(counts: PassCounts): number {
    return this.#dispatches.of(counts).length;
  }

  /**
   * Submits a pass, prepared or not. In parts either way: the GPU gets nothing of a submit before Dawn
   * has translated all of it, and begins while the host is at the rest.
   */
  submit(counts: PassCounts): void {
    const key = keyOf(counts);
    const prepared = this.#prepared.get(key);
    // Commands are submitted once.
    this.#prepared.delete(key);
    for (const part of prepared ?? this.#encode(counts)) this.#device.queue.submit([part]);
  }

  /** Encodes a pass that is likely to come. */
  prepare(counts: PassCounts): void {
    const key = keyOf(counts);
    const known = this.#prepared.get(key);
    this.#prepared.delete(key);
    this.#prepared.set(key, known ?? [...this.#encode(counts)]);
    for (const oldest of this.#prepared.keys()) {
      if (this.#prepared.size <= preparedMax) break;
      this.#prepared.delete(oldest);
    }
  }

  /** The parts of a pass, each encoded when it is asked for. */
  *#encode(counts: PassCounts): Generator<GPUCommandBuffer> {
    const dispatches = this.#dispatches.of(counts);
    for (let from = 0, count = firstDispatches; from < dispatches.length; ) {
      const encoder = this.#device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      encodeDispatches(pass, dispatches.slice(from, from + count));
      pass.end();
      yield encoder.finish();
      from += count;
      count = Math.min(3 * count, partDispatches);
    }
  }
}

import { BackendError } from "../../errors.ts";
import type { OpenDevice } from "./device.ts";
import type { DeviceMemory, TakenBuffer } from "./device-memory.ts";

/** A range of a buffer to bring to this machine's memory. */
export interface Range {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly bytes: number;
}

/** Bytes of a staging buffer: large snapshots take several, none of which a device refuses for its size. */
const batchBytes = 128 * 2 ** 20;
/** Larger ones are given back at once. */
const idleBytesMax = 16 * 2 ** 20;

/** Runs of ranges, none over `batchBytes` unless one range is. */
function batches(ranges: readonly Range[]): Range[][] {
  const all: Range[][] = [];
  let left = 0;
  for (const range of ranges) {
    if (range.bytes > left || all.length === 0) {
      all.push([]);
      left = Math.max(batchBytes, range.bytes);
    }
    all.at(-1)!.push(range);
    left -= range.bytes;
  }
  return all;
}

/**
 * Brings ranges of device memory back, through staging buffers that are used again. Copies are submits of
 * their own: one that is refused, for want of a staging buffer, must take nothing else with it.
 */
export class Readback {
  readonly #open: Pick<OpenDevice, "device" | "guard">;
  readonly #memory: DeviceMemory;
  readonly #idle: GPUBuffer[] = [];
  readonly #pending = new Set<Promise<unknown>>();

  constructor(open: Pick<OpenDevice, "device" | "guard">, memory: DeviceMemory) {
    this.#open = open;
    this.#memory = memory;
  }

  /**
   * Brings ranges as they are after everything submitted so far; resolves with their floats.
   * Rejects with BackendLostError, and with MemoryError where there is no room to read into: what
   * was submitted before has been done all the same.
   */
  async bring(ranges: readonly Range[]): Promise<Float32Array[]> {
    // All are submitted before this waits, so that no later work comes between them.
    const parts = batches(ranges).map((batch) => this.#submit(batch));
    // Where there is nothing to bring, this still waits.
    if (parts.length === 0) parts.push(this.#submit([]));
    const results = await Promise.allSettled(parts);
    const failed = results.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
    return results.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
  }

  #submit(ranges: readonly Range[]): Promise<Float32Array[]> {
    const { device } = this.#open;
    const total = ranges.reduce((sum, range) => sum + range.bytes, 0);
    const staging = total > 0 ? this.#take(total) : null;
    device.pushErrorScope("validation");
    if (staging) {
      const encoder = device.createCommandEncoder();
      let at = 0;
      for (const { buffer, offset, bytes } of ranges) {
        if (bytes > 0) encoder.copyBufferToBuffer(buffer, offset, staging.buffer, at, bytes);
        at += bytes;
      }
      device.queue.submit([encoder.finish()]);
    }
    const arrived = staging
      ? staging.buffer.mapAsync(GPUMapMode.READ, 0, total)
      : device.queue.onSubmittedWorkDone();
    const done = this.#arrive(staging, device.popErrorScope(), arrived, ranges, total);
    this.#pending.add(done);
    const forget = () => this.#pending.delete(done);
    done.then(forget, forget);
    return done;
  }

  /** Waits until nothing is mapped or about to be. */
  async drain(): Promise<void> {
    await Promise.allSettled(this.#pending);
    for (const buffer of this.#idle) this.#memory.drop(buffer);
    this.#idle.length = 0;
  }

  async #arrive(
    staging: TakenBuffer | null,
    refused: Promise<GPUError | null>,
    arrived: Promise<unknown>,
    ranges: readonly Range[],
    total: number,
  ): Promise<Float32Array[]> {
    // All of them end before this does: a map that is pending when Dawn goes crashes the process.
    const [ready, refusal, arrival] = await Promise.allSettled([staging?.ready, refused, arrived]);
    try {
      if (ready.status === "rejected") throw ready.reason;
      if (refusal.status === "rejected") throw refusal.reason;
      if (refusal.value) {
        throw new BackendError(`The GPU refused to be read: ${refusal.value.message}`);
      }
      if (arrival.status === "rejected") throw arrival.reason;
      this.#open.guard.check();
      if (!staging) return ranges.map(() => new Float32Array(0));
      const mapped = staging.buffer.getMappedRange(0, total);
      let end = 0;
      const copies = ranges.map(({ bytes }) => {
        end += bytes;
        return new Float32Array(mapped.slice(end - bytes, end));
      });
      staging.buffer.unmap();
      if (staging.buffer.size > idleBytesMax) this.#memory.drop(staging.buffer);
      else this.#idle.push(staging.buffer);
      return copies;
    } catch (cause) {
      if (staging) this.#memory.drop(staging.buffer);
      throw await this.#open.guard.explain(cause);
    }
  }

  /** The smallest idle staging buffer that is large enough, or a new one. */
  #take(bytes: number): TakenBuffer {
    const fitting = this.#idle.filter((buffer) => buffer.size >= bytes);
    const best = fitting.sort((a, b) => a.size - b.size)[0];
    if (best) {
      this.#idle.splice(this.#idle.indexOf(best), 1);
      return { buffer: best, ready: Promise.resolve() };
    }
    const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, 4096)));
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    return this.#memory.take("readback", size, usage);
  }
}

/** A range of a buffer to bring to this machine's memory. */
export interface Range {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly bytes: number;
}

/** Brings ranges of device memory back, through staging buffers that are used again. */
export class Readback {
  readonly #device: GPUDevice;
  readonly #idle: GPUBuffer[] = [];
  readonly #pending = new Set<Promise<unknown>>();

  constructor(device: GPUDevice) {
    this.#device = device;
  }

  /** Submits what was encoded, with copies of the ranges behind it; resolves with their floats. */
  submit(encoder: GPUCommandEncoder, ranges: readonly Range[]): Promise<Float32Array[]> {
    const total = ranges.reduce((sum, range) => sum + range.bytes, 0);
    const staging = total > 0 ? this.#take(total) : null;
    let at = 0;
    for (const { buffer, offset, bytes } of ranges) {
      if (bytes > 0) encoder.copyBufferToBuffer(buffer, offset, staging!, at, bytes);
      at += bytes;
    }
    this.#device.queue.submit([encoder.finish()]);
    const done = this.#map(staging, ranges, total);
    this.#pending.add(done);
    const forget = () => this.#pending.delete(done);
    done.then(forget, forget);
    return done;
  }

  /** Waits until nothing is mapped or about to be. */
  async drain(): Promise<void> {
    await Promise.allSettled(this.#pending);
    for (const buffer of this.#idle) buffer.destroy();
    this.#idle.length = 0;
  }

  async #map(
    staging: GPUBuffer | null,
    ranges: readonly Range[],
    total: number,
  ): Promise<Float32Array[]> {
    if (!staging) {
      await this.#device.queue.onSubmittedWorkDone();
      return ranges.map(() => new Float32Array(0));
    }
    await staging.mapAsync(GPUMapMode.READ, 0, total);
    const copied = new Float32Array(staging.getMappedRange(0, total).slice(0));
    staging.unmap();
    this.#idle.push(staging);
    let end = 0;
    return ranges.map(({ bytes }) => {
      end += bytes / 4;
      return copied.slice(end - bytes / 4, end);
    });
  }

  /** The smallest idle staging buffer that is large enough, or a new one. */
  #take(bytes: number): GPUBuffer {
    const fitting = this.#idle.filter((buffer) => buffer.size >= bytes);
    const best = fitting.sort((a, b) => a.size - b.size)[0];
    if (best) {
      this.#idle.splice(this.#idle.indexOf(best), 1);
      return best;
    }
    const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, 4096)));
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    return this.#device.createBuffer({ label: "readback", size, usage });
  }
}

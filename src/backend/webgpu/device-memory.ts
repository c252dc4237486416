import { BackendError, MemoryError, type MemorySentence } from "../../errors.ts";
import type { OpenDevice } from "./device.ts";

/** The device has refused a buffer: what was taken until then is all that it has. */
export class RefusedError extends MemoryError {}

/** What gives buffers: a device, or a sum of what would be taken. */
export interface BufferSource {
  /** Bytes taken so far. */
  readonly bytes: number;
  /** Bytes of a buffer that is bound whole, at most. */
  readonly bufferBytesMax: number;
  /**
   * A zeroed buffer of at least `bytes`.
   * @throws MemoryError where there is no room for it
   */
  create(label: string, bytes: number, usage: GPUBufferUsageFlags): Promise<GPUBuffer>;
}

/** Bytes of a buffer: what one layer has of it. */
export type BufferPart = Required<GPUBufferBinding>;

/** A buffer that may be encoded at once, and whether the device had room for it. */
export interface TakenBuffer {
  readonly buffer: GPUBuffer;
  /** Rejects with MemoryError, or BackendError where the buffer is impossible. */
  readonly ready: Promise<void>;
}

/** Bytes of a buffer as it is taken. */
export const bufferBytes = (bytes: number): number => Math.max(16, Math.ceil(bytes / 16) * 16);

/** Buffers of one device, counted, and all freed together. */
export class DeviceMemory implements BufferSource {
  readonly #open: Pick<OpenDevice, "device" | "guard">;
  readonly #buffers = new Set<GPUBuffer>();
  #bytes = 0;

  constructor(open: Pick<OpenDevice, "device" | "guard">) {
    this.#open = open;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get bufferBytesMax(): number {
    const { maxBufferSize, maxStorageBufferBindingSize } = this.#open.device.limits;
    return Math.min(maxBufferSize, maxStorageBufferBindingSize);
  }

  /** How many buffers are alive. */
  get live(): number {
    return this.#buffers.size;
  }

  /**
   * A zeroed buffer of at least `bytes`.
   * @throws MemoryError where the device has no room; BackendLostError where it is gone
   */
  async create(label: string, bytes: number, usage: GPUBufferUsageFlags): Promise<GPUBuffer> {
    this.#open.guard.check();
    const { buffer, ready } = this.take(label, bytes, usage);
    await ready;
    return buffer;
  }

  /** The same without waiting. */
  take(label: string, bytes: number, usage: GPUBufferUsageFlags): TakenBuffer {
    const { device } = this.#open;
    const size = bufferBytes(bytes);
    device.pushErrorScope("out-of-memory");
    device.pushErrorScope("validation");
    const buffer = device.createBuffer({ label, size, usage });
    // Both at once: scopes are a stack, and others push theirs while these are awaited.
    const errors = Promise.all([device.popErrorScope(), device.popErrorScope()]);
    this.#buffers.add(buffer);
    this.#bytes += size;
    const ready = errors.then(([invalid, outOfMemory]) => {
      if (!invalid && !outOfMemory) return;
      this.drop(buffer);
      if (invalid) throw new BackendError(`${label}: ${invalid.message}`);
      const sentence: MemorySentence = (asked, taken) =>
        `The device refused ${asked} for "${label}", beside ${taken} that it has given.`;
      throw new RefusedError(size, this.#bytes, "End what else uses the GPU.", sentence);
    });
    return { buffer, ready };
  }

  /** Gives one back before the others. */
  drop(buffer: GPUBuffer): void {
    if (!this.#buffers.delete(buffer)) return;
    this.#bytes -= buffer.size;
    buffer.destroy();
  }

  free(): void {
    for (const buffer of this.#buffers) buffer.destroy();
    this.#buffers.clear();
    this.#bytes = 0;
  }
}

import { BackendError, invariant } from "../../errors.ts";
import type { HeldState } from "../backend.ts";
import type { OpenDevice } from "./device.ts";
import { bufferBytes, type DeviceMemory, type TakenBuffer } from "./device-memory.ts";
import type { Range } from "./readback.ts";

/** Where a part of a state lies among the buffers that hold it. */
interface HeldPart {
  readonly buffer: number;
  readonly offset: number;
  readonly bytes: number;
}

/** How every state is laid out that is set aside. */
export interface HeldLayout {
  readonly parts: readonly HeldPart[];
  /** Bytes of each of its buffers. */
  readonly buffers: readonly number[];
}

/** Lays parts one behind the other, in as few buffers as the device's limit allows. */
export function layOut(partBytes: readonly number[], bufferBytesMax: number): HeldLayout {
  const buffers: number[] = [];
  const parts = partBytes.map((bytes) => {
    const last = buffers.at(-1);
    if (last === undefined || bufferBytes(last + bytes) > bufferBytesMax) buffers.push(0);
    const buffer = buffers.length - 1;
    const offset = buffers[buffer]!;
    buffers[buffer] = offset + bytes;
    return { buffer, offset, bytes };
  });
  return { parts, buffers };
}

/**
 * States set aside in buffers of their own. They are copied and never bound, so that only the limit of a
 * buffer's size counts. Buffers of a state that was disposed of wait for the next one.
 */
export class HeldBuffers {
  readonly #open: Pick<OpenDevice, "device" | "guard">;
  readonly #memory: DeviceMemory;
  readonly #layout: HeldLayout;
  readonly #held = new Map<HeldState, readonly GPUBuffer[]>();
  readonly #idle: (readonly GPUBuffer[])[] = [];
  readonly #pending = new Set<Promise<unknown>>();

  /** @param partBytes of the parts of every state */
  constructor(
    open: Pick<OpenDevice, "device" | "guard">,
    memory: DeviceMemory,
    partBytes: readonly number[],
  ) {
    this.#open = open;
    this.#memory = memory;
    this.#layout = layOut(partBytes, open.device.limits.maxBufferSize);
  }

  /**
   * Copies a state aside, as it is after everything submitted so far. Rejects with MemoryError where the
   * device has no room for it, and with BackendLostError; what was submitted is done all the same.
   */
  async hold(state: readonly Range[]): Promise<HeldState> {
    const idle = this.#idle.pop();
    if (idle) {
      this.#copy(state, this.#partsIn(idle));
      return this.#give(idle);
    }
    const usage = GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const taken = this.#layout.buffers.map((bytes) =>
      this.#memory.take("held state", bytes, usage),
    );
    const { device } = this.#open;
    // Submitted before the buffers are known to be there, so that no later work comes between.
    device.pushErrorScope("validation");
    this.#copy(state, this.#partsIn(taken.map(({ buffer }) => buffer)));
    const held = this.#arrive(taken, device.popErrorScope());
    this.#pending.add(held);
    const forget = () => this.#pending.delete(held);
    held.then(forget, forget);
    return await held;
  }

  /**
   * Copies a held state to where a slot's lies.
   * @throws InvariantError where it was disposed of, or is another backend's
   */
  resume(held: HeldState, state: readonly Range[]): void {
    this.#copy(this.partsOf(held), state);
  }

  /**
   * Where a held state lies.
   * @throws InvariantError where it was disposed of, or is another backend's
   */
  partsOf(held: HeldState): Range[] {
    const buffers = this.#held.get(held);
    invariant(buffers !== undefined, "a held state that was disposed of, or is another backend's");
    return this.#partsIn(buffers);
  }

  /** Waits until the device has answered for every state. */
  async drain(): Promise<void> {
    await Promise.allSettled(this.#pending);
  }

  async #arrive(
    taken: readonly TakenBuffer[],
    refused: Promise<GPUError | null>,
  ): Promise<HeldState> {
    const buffers = taken.map(({ buffer }) => buffer);
    // All of them end before this does. With a buffer the copy is refused too, and says less.
    const answers = await Promise.allSettled([...taken.map(({ ready }) => ready), refused]);
    try {
      for (const answer of answers) {
        if (answer.status === "rejected") throw answer.reason;
        if (answer.value) {
          throw new BackendError(`The GPU refused to hold a state: ${answer.value.message}`);
        }
      }
      this.#open.guard.check();
      return this.#give(buffers);
    } catch (cause) {
      for (const buffer of buffers) this.#memory.drop(buffer);
      throw await this.#open.guard.explain(cause);
    }
  }

  #give(buffers: readonly GPUBuffer[]): HeldState {
    const held: HeldState = {
      bytes: buffers.reduce((sum, { size }) => sum + size, 0),
      [Symbol.dispose]: () => {
        if (this.#held.delete(held)) this.#idle.push(buffers);
      },
    };
    this.#held.set(held, buffers);
    return held;
  }

  #partsIn(buffers: readonly GPUBuffer[]): Range[] {
    return this.#layout.parts.map(({ buffer, offset, bytes }) => {
      return { buffer: buffers[buffer]!, offset, bytes };
    });
  }

  #copy(from: readonly Range[], to: readonly Range[]): void {
    const { device } = this.#open;
    const encoder = device.createCommandEncoder();
    from.forEach(({ buffer, offset, bytes }, part) => {
      const target = to[part]!;
      encoder.copyBufferToBuffer(buffer, offset, target.buffer, target.offset, bytes);
    });
    device.queue.submit([encoder.finish()]);
  }
}

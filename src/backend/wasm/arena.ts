import { invariant, MemoryError } from "../../errors.ts";

const wasmPageBytes = 65536;
/** What a 32-bit WebAssembly memory can hold. */
export const arenaBytesMax: number = 65536 * wasmPageBytes;

export const roundUp = (value: number, step: number): number => Math.ceil(value / step) * step;

/**
 * One shared WebAssembly memory, used in two phases: first everything is placed and its contents are
 * promised (`place…`), then the memory is taken at its exact size and filled (`fill`). So the sum is
 * known before a byte is taken, and nothing ever moves.
 */
export class Arena {
  /** Bytes placed so far, the reserved start included. */
  bytes: number;
  readonly #tasks: (() => void | Promise<void>)[] = [];
  #memory: WebAssembly.Memory | null = null;

  /** @param firstByte where placing begins; what lies below is the kernels' control block. */
  constructor(firstByte: number) {
    this.bytes = firstByte;
  }

  get memory(): WebAssembly.Memory {
    invariant(this.#memory !== null, "the arena has no memory yet");
    return this.#memory;
  }

  /** What the memory takes that holds all this. */
  get memoryBytes(): number {
    return roundUp(this.bytes, wasmPageBytes);
  }

  /** Takes `bytes`, zeroed, on cache lines of their own. Returns the address. */
  place(bytes: number): number {
    invariant(this.#memory === null, "the arena is closed");
    const at = this.bytes;
    this.bytes += roundUp(bytes, 64);
    return at;
  }

  /** Runs once the memory is there. */
  later(task: () => void | Promise<void>): void {
    this.#tasks.push(task);
  }

  /** Places words, pointers among them. */
  placeU32(values: readonly number[]): number {
    const at = this.place(4 * values.length);
    this.later(() => this.u32(at, values.length).set(values));
    return at;
  }

  /** Places a vector that is read later. */
  placeF32(length: number, read: () => Promise<Float32Array>): number {
    const at = this.place(4 * length);
    this.later(async () => {
      const values = await read();
      invariant(values.length === length, `${values.length} floats where ${length} were placed`);
      this.f32(at, length).set(values);
    });
    return at;
  }

  /** How much there is to fill. */
  get tasks(): number {
    return this.#tasks.length;
  }

  /**
   * @param onTask called after each task
   * @throws MemoryError where the engine refuses the memory
   */
  async fill(onTask: () => void = () => {}): Promise<void> {
    try {
      this.#memory = new WebAssembly.Memory({
        initial: this.memoryBytes / wasmPageBytes,
        maximum: arenaBytesMax / wasmPageBytes,
        shared: true,
      });
    } catch {
      throw new MemoryError(this.memoryBytes, 0, "WebAssembly refused to reserve that much.");
    }
    for (const task of this.#tasks) {
      await task();
      onTask();
    }
    this.#tasks.length = 0;
  }

  i32(at: number, length: number): Int32Array {
    return new Int32Array(this.memory.buffer, at, length);
  }

  u16(at: number, length: number): Uint16Array {
    return new Uint16Array(this.memory.buffer, at, length);
  }

  u32(at: number, length: number): Uint32Array {
    return new Uint32Array(this.memory.buffer, at, length);
  }

  f32(at: number, length: number): Float32Array {
    return new Float32Array(this.memory.buffer, at, length);
  }
}

/** Takes and fills several memories, one after the other. */
export async function fillAll(
  arenas: readonly Arena[],
  onProgress?: (done: number, total: number) => void,
): Promise<void> {
  const total = arenas.reduce((sum, { tasks }) => sum + tasks, 0);
  let done = 0;
  for (const arena of arenas) await arena.fill(() => onProgress?.(++done, total));
}

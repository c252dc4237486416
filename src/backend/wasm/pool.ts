import { BackendError } from "../../errors.ts";
import type { Arena } from "./arena.ts";
import { CONTROL_BASE, CONTROL_DONE, CONTROL_EXIT, CONTROL_GENERATION } from "./layout.ts";
import type { ThreadSetup, WasmPlatform, WasmThread } from "./platform.ts";

const word = (offset: number): number => (CONTROL_BASE + offset) / 4;

/** The compute threads. The host's own thread never computes, so it always answers. */
export class ThreadPool {
  /** Resolves when a thread has died. */
  readonly lost: Promise<BackendError>;
  readonly #control: Int32Array;
  readonly #threads: readonly WasmThread[];

  private constructor(arena: Arena, threads: readonly WasmThread[], lost: Promise<BackendError>) {
    this.#control = new Int32Array(arena.memory.buffer);
    this.#threads = threads;
    this.lost = lost;
  }

  /** Starts one thread for each scratch area. */
  static async start(
    platform: WasmPlatform,
    arena: Arena,
    setup: Omit<ThreadSetup, "memory" | "threads" | "scratch">,
    scratches: readonly number[],
  ): Promise<ThreadPool> {
    const { promise: lost, resolve } = Promise.withResolvers<BackendError>();
    const threads = await Promise.all(
      scratches.map((scratch) => {
        const own = { ...setup, memory: arena.memory, threads: scratches.length, scratch };
        return platform.spawn(own, (error) => {
          resolve(new BackendError(`a compute thread died: ${error.message}`, error));
        });
      }),
    );
    return new ThreadPool(arena, threads, lost);
  }

  /** Runs the pass that stands in the pass block. */
  async run(): Promise<void> {
    const done = Atomics.load(this.#control, word(CONTROL_DONE));
    Atomics.add(this.#control, word(CONTROL_GENERATION), 1);
    Atomics.notify(this.#control, word(CONTROL_GENERATION));
    const wait = Atomics.waitAsync(this.#control, word(CONTROL_DONE), done);
    if (!wait.async) return;
    const outcome = await Promise.race([wait.value, this.lost]);
    if (outcome instanceof BackendError) throw outcome;
  }

  async stop(): Promise<void> {
    Atomics.store(this.#control, word(CONTROL_EXIT), 1);
    Atomics.add(this.#control, word(CONTROL_GENERATION), 1);
    Atomics.notify(this.#control, word(CONTROL_GENERATION));
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }
}

import { nextTask } from "../../clock.ts";
import { BackendError, BackendLostError, messageOf } from "../../errors.ts";
import type { Arena } from "./arena.ts";
import type { FarMemory } from "./far.ts";
import {
  CONTROL_BASE,
  CONTROL_DONE,
  CONTROL_EXIT,
  CONTROL_FENCE,
  CONTROL_GENERATION,
  CONTROL_LEFT,
  STEP_BYTES,
  STEP_CLAIMED,
  STEP_DONE,
  UNIT_BITS,
} from "./layout.ts";
import type { ThreadSetup, WasmPlatform, WasmThread } from "./platform.ts";

const word = (offset: number): number => (CONTROL_BASE + offset) / 4;

/** Passes that a thread may be behind: counters are told apart for 2^(32 − UNIT_BITS) passes. */
const passesBehindMax = 2 ** (32 - UNIT_BITS) / 2;

/** The compute threads. The host's own thread never computes, so it always answers. */
export class ThreadPool {
  /** Resolves when a thread has died. */
  readonly lost: Promise<BackendLostError>;
  readonly #control: Int32Array;
  readonly #counters: Int32Array;
  readonly #threads: readonly WasmThread[];
  /** Threads that end once this is set were asked to. */
  readonly #life: { stopping: boolean };
  #lostError: BackendLostError | null = null;
  /** Fails the pass that waits. */
  #fail: ((error: BackendError) => void) | null = null;

  private constructor(
    arena: Arena,
    { counters, instructions }: Pick<ThreadSetup, "counters" | "instructions">,
    threads: readonly WasmThread[],
    lost: Promise<BackendLostError>,
    life: { stopping: boolean },
  ) {
    this.#life = life;
    this.#counters = arena.i32(counters, ((instructions + 1) * STEP_BYTES) / 4);
    this.#control = new Int32Array(arena.memory.buffer);
    this.#threads = threads;
    this.lost = lost;
    // Listened to once: a race at every pass would leave a reaction behind at each.
    void lost.then((error) => {
      this.#lostError = error;
      this.#fail?.(error);
    });
  }

  /**
   * Starts one thread for each scratch area.
   * @throws BackendError where one doesn't start; those that did are ended
   */
  static async start(
    platform: WasmPlatform,
    arena: Arena,
    setup: Omit<ThreadSetup, "memory" | "thread" | "threads" | "scratch" | "far">,
    scratches: readonly number[],
    memories: readonly FarMemory[] = [],
  ): Promise<ThreadPool> {
    const { promise: lost, resolve } = Promise.withResolvers<BackendLostError>();
    const life = { stopping: false };
    const count = scratches.length;
    const started = await Promise.allSettled(
      scratches.map((scratch, thread) => {
        const far = memories.map((one) => ({
          ...one.threads[thread]!,
          memory: one.arena.memory,
        }));
        const own = { ...setup, memory: arena.memory, thread, threads: count, scratch, far };
        return platform.spawn(own, (error) => {
          if (!life.stopping)
            resolve(new BackendLostError(`A compute thread died: ${error.message}`, error));
        });
      }),
    );
    const threads = started.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const failed = started.find((one) => one.status === "rejected");
    if (failed) {
      await Promise.all(threads.map((thread) => thread.terminate()));
      const why = messageOf(failed.reason);
      const message = `Only ${threads.length} of ${count} compute threads started: ${why}.`;
      throw new BackendError(`${message} Ask for fewer (--threads).`, failed.reason);
    }
    return new ThreadPool(arena, setup, threads, lost, life);
  }

  /**
   * Runs one pass. `write` fills the pass block: only after the counters have moved on to this pass,
   * because a thread that missed the last one's end may still look at both. It would take more rows
   * for more units, and finds by compare-and-exchange that none of them is its own.
   */
  async run(write: () => void): Promise<void> {
    if (this.#lostError) throw this.#lostError;
    const done = Atomics.load(this.#control, word(CONTROL_DONE));
    const generation = Atomics.load(this.#control, word(CONTROL_GENERATION)) + 1;
    while (this.#passesBehind(generation) > passesBehindMax) await nextTask();
    const base = generation << UNIT_BITS;
    for (let at = 0; at < this.#counters.length; at += STEP_BYTES / 4) {
      Atomics.store(this.#counters, at + STEP_CLAIMED / 4, base);
      Atomics.store(this.#counters, at + STEP_DONE / 4, base);
    }
    // A read-modify-write, so that no later plain write overtakes the stores above.
    Atomics.add(this.#control, word(CONTROL_FENCE), 1);
    write();
    Atomics.store(this.#control, word(CONTROL_GENERATION), generation);
    Atomics.notify(this.#control, word(CONTROL_GENERATION));
    // Looks again after each wake: a thread that was held up between ending the last pass and saying so
    // wakes whoever waits by then.
    while (Atomics.load(this.#control, word(CONTROL_DONE)) === done) await this.#doneChange(done);
  }

  /** Returns when the count of ended passes may no longer be `done`. */
  async #doneChange(done: number): Promise<void> {
    // A thread may have died between two looks, when nobody waited to hear of it.
    if (this.#lostError) throw this.#lostError;
    const wait = Atomics.waitAsync(this.#control, word(CONTROL_DONE), done);
    if (!wait.async) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#fail = reject;
    void wait.value.then(() => resolve());
    await promise;
  }

  /** How many passes the slowest thread has not left yet. */
  #passesBehind(generation: number): number {
    const left = this.#threads.map((_, thread) =>
      Atomics.load(this.#control, word(CONTROL_LEFT) + thread),
    );
    return Math.max(...left.map((pass) => (generation - pass) | 0));
  }

  async stop(): Promise<void> {
    this.#life.stopping = true;
    Atomics.store(this.#control, word(CONTROL_EXIT), 1);
    Atomics.add(this.#control, word(CONTROL_GENERATION), 1);
    Atomics.notify(this.#control, word(CONTROL_GENERATION));
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }
}

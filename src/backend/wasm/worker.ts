import {
  CONTROL_BASE,
  CONTROL_DONE,
  CONTROL_EXIT,
  CONTROL_FINISHED,
  CONTROL_GENERATION,
} from "./layout.ts";
import { instantiate, type ThreadSetup } from "./platform.ts";

const word = (offset: number): number => (CONTROL_BASE + offset) / 4;

/**
 * The life of a compute thread: parked until the host bumps the generation, then one pass. The last
 * thread to finish wakes the host. Returns when the host asks for the end.
 */
export async function serveThread(setup: ThreadSetup, ready: () => void): Promise<void> {
  const { module, memory, threads, program, instructions, pass, scratch } = setup;
  const kernels = await instantiate(module, memory);
  const control = new Int32Array(memory.buffer);
  let generation = Atomics.load(control, word(CONTROL_GENERATION));
  ready();
  for (;;) {
    Atomics.wait(control, word(CONTROL_GENERATION), generation);
    if (Atomics.load(control, word(CONTROL_EXIT)) !== 0) return;
    const current = Atomics.load(control, word(CONTROL_GENERATION));
    if (current === generation) continue;
    generation = current;
    kernels.run(program, instructions, pass, scratch, threads);
    if (Atomics.add(control, word(CONTROL_FINISHED), 1) === threads - 1) {
      Atomics.store(control, word(CONTROL_FINISHED), 0);
      Atomics.add(control, word(CONTROL_DONE), 1);
      Atomics.notify(control, word(CONTROL_DONE));
    }
  }
}

import {
  CONTROL_BASE,
  CONTROL_DONE,
  CONTROL_EXIT,
  CONTROL_GENERATION,
  CONTROL_LEFT,
} from "./layout.ts";
import { instantiate, type ThreadSetup } from "./platform.ts";
import { farImports } from "./worker-far.ts";

const word = (offset: number): number => (CONTROL_BASE + offset) / 4;

/** Waits while the control word at `index` is `value`; a thread of its own blocks. */
type Park = (control: Int32Array, index: number, value: number) => unknown;

/**
 * The life of a compute thread: parked until the host bumps the generation, then one pass. One
 * thread of them wakes the host at its end. Returns when the host asks for the end.
 */
export async function serveThread(
  setup: ThreadSetup,
  ready: () => void,
  park: Park = Atomics.wait,
): Promise<void> {
  const { module, memory, thread, threads, program, instructions, counters, pass, scratch, wide } =
    setup;
  const far = await farImports(module, memory, setup.far, wide);
  const kernels = await instantiate(module, memory, far);
  kernels.useWide(wide);
  const control = new Int32Array(memory.buffer);
  let generation = Atomics.load(control, word(CONTROL_GENERATION));
  ready();
  for (;;) {
    await park(control, word(CONTROL_GENERATION), generation);
    if (Atomics.load(control, word(CONTROL_EXIT)) !== 0) return;
    const current = Atomics.load(control, word(CONTROL_GENERATION));
    if (current === generation) continue;
    generation = current;
    if (kernels.run(program, instructions, pass, scratch, threads, counters, generation) === 1) {
      Atomics.add(control, word(CONTROL_DONE), 1);
      Atomics.notify(control, word(CONTROL_DONE));
    }
    Atomics.store(control, word(CONTROL_LEFT) + thread, generation);
  }
}

import { expect, test } from "vitest";
import { Arena } from "./arena.ts";
import { ARENA_START, INSTRUCTION_BYTES, OP_READ, PASS_BYTES, STEP_BYTES } from "./layout.ts";
import { nodePlatform } from "./platform-node.ts";
import { ThreadPool } from "./pool.ts";

test("READ reads every word once, whichever thread does", async () => {
  const bytes = 5 * 2 ** 20;
  const arena = new Arena(ARENA_START);
  const pass = arena.place(PASS_BYTES);
  const counters = arena.place(2 * STEP_BYTES);
  const scratches = [arena.place(16), arena.place(16)];
  const data = arena.place(bytes);
  const padding = new Array<number>(INSTRUCTION_BYTES / 4 - 4).fill(0);
  const program = arena.placeU32([OP_READ, 0, data, bytes, ...padding]);
  await arena.fill();
  const words = arena.u32(data, bytes / 4);
  for (let at = 0; at < words.length; at++) words[at] = Math.imul(at, 0x9e3779b9);
  arena.u32(pass, 1)[0] = 1;
  const module = await WebAssembly.compile(await nodePlatform.kernels(false));
  const setup = { module, program, instructions: 1, counters, pass, wide: false };
  const pool = await ThreadPool.start(nodePlatform, arena, setup, scratches);
  await pool.run(() => {});
  await pool.stop();
  const fold = (values: Uint32Array) => values.reduce((folded, word) => folded ^ word, 0);
  const read = scratches.map((scratch) => fold(arena.u32(scratch, 4)));
  expect((read[0]! ^ read[1]!) >>> 0).toBe(fold(words) >>> 0);
});

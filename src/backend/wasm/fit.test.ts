import { expect, test } from "vitest";
import { MemoryError } from "../../errors.ts";
import type { BackendOptions } from "../backend.ts";
import { memoryCases, nanoCase } from "../memory.cases.ts";
import { sumOf } from "../memory-use.ts";
import { type WasmChoice, wasmPlanner } from "./fit.ts";
import type { WasmPlatform } from "./platform.ts";
import { nodePlatform } from "./platform-node.ts";
import { WasmBackend } from "./wasm.ts";

/** The bytes of the memory that a backend has, and what it says of them. */
async function taken(options: BackendOptions, choice: WasmChoice) {
  let bytes = 0;
  const platform: WasmPlatform = {
    ...nodePlatform,
    spawn(setup, failed) {
      bytes = setup.memory.buffer.byteLength;
      return nodePlatform.spawn(setup, failed);
    },
  };
  await using backend = await WasmBackend.open({ ...options, ...choice, platform });
  return { bytes, memory: backend.info.memory };
}

test.each([
  { threads: 1, activations: "f32" },
  { threads: 2, activations: "f32" },
  { threads: 3, activations: "int8" },
] as const)("a plan is what is taken, to the byte: %o", async (choice) => {
  const planner = wasmPlanner(choice, null);
  const third = memoryCases().filter((_, at) => at % 3 === choice.threads - 1);
  for (const options of [...third, await nanoCase()]) {
    const { memory, refusal } = await planner.plan(options);
    const { bytes, memory: held } = await taken(options, choice);
    expect(refusal).toBeNull();
    expect(memory).toEqual(held);
    expect(sumOf(memory)).toBe(bytes);
  }
});

test("what can't fit is refused before any of it is taken, with what would fit", async () => {
  const choice: WasmChoice = { threads: 2, activations: "f32" };
  const planner = wasmPlanner(choice, null);
  const options = { ...(await nanoCase()), pages: 512 };
  const need = sumOf((await planner.plan(options)).memory);
  const limited = { ...options, memoryBytesMax: need - 1 };
  const opening = WasmBackend.open({ ...limited, ...choice, platform: nodePlatform });
  const error = await opening.catch((thrown) => thrown);
  expect(error).toBeInstanceOf(MemoryError);
  const [, tokens] = /keys and values of (\d+) tokens, or one slot with those of 32768/.exec(
    error.message,
  )!;
  const pages = Number(tokens) / 64;
  expect(pages).toBeGreaterThan(500);
  expect((await planner.plan({ ...limited, pages })).refusal).toBeNull();
  expect((await planner.plan({ ...limited, pages: pages + 1 })).refusal).toMatch(
    /^The model needs [\d.]+ MiB, [\d.]+ MiB are free\.$/,
  );
  const none = { ...options, memoryBytesMax: 2 ** 20, ...choice, platform: nodePlatform };
  await expect(WasmBackend.open(none)).rejects.toThrow(/No context is small enough/);
});

test("no WebAssembly memory holds more than 4 GiB, whatever the machine has", async () => {
  const planner = wasmPlanner({ threads: 1, activations: "f32" }, 2 ** 40);
  const options = { ...(await nanoCase()), pages: 2 ** 20 };
  expect((await planner.plan(options)).refusal).toMatch(
    /a WebAssembly memory holds at most 4096\.0 MiB/,
  );
});

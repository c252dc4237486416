import { expect, test } from "vitest";
import { NonFiniteLogitsError } from "../../errors.ts";
import { pageId, slotId } from "../../ids.ts";
import { pageRows } from "../../limits.ts";
import { tinyDrafterShape } from "../../model/drafter-shape.ts";
import { planPass } from "../../model/plan.ts";
import { derivedSizes } from "../../model/shape.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { randomWeights } from "../../weights/random.ts";
import { randomDrafterWeights } from "../../weights/random-drafter.ts";
import type { Matrix, Weights } from "../../weights/weights.ts";
import { backendCases } from "../backend.cases.ts";
import type { Backend, BackendOptions } from "../backend.ts";
import { drafterCaseName, drafterCases, worstDraftDifference } from "../drafters.cases.ts";
import { draftCases } from "../drafts.cases.ts";
import { modelCases, worstDifference } from "../models.cases.ts";
import { ReferenceBackend } from "../reference/reference.ts";
import { feed, printOf, prompt, segment } from "../suite.cases.ts";
import { PAGE_ROWS } from "./layout.ts";
import type { WasmPlatform } from "./platform.ts";
import { nodePlatform } from "./platform-node.ts";
import { WasmBackend } from "./wasm.ts";

const tiny = randomWeights(tinyShape(), { seed: 3, bits: 4, groupSize: 32 });

/** A machine whose engine has no relaxed SIMD. */
const plainPlatform: WasmPlatform = {
  ...nodePlatform,
  kernels: (relaxed) =>
    relaxed ? Promise.resolve(new Uint8Array([0])) : nodePlatform.kernels(false),
};

const variants = [
  { name: "wasm, 1 thread", threads: 1, activations: "f32", platform: nodePlatform },
  { name: "wasm, 3 threads", threads: 3, activations: "f32", platform: nodePlatform },
  {
    name: "wasm, int8 in 16 bits",
    threads: 2,
    activations: "int8",
    platform: nodePlatform,
    wide: false,
  },
  {
    name: "wasm, int8 in 32 bits",
    threads: 2,
    activations: "int8",
    platform: nodePlatform,
    wide: true,
  },
  { name: "wasm, no relaxed SIMD", threads: 2, activations: "f32", platform: plainPlatform },
  { name: "wasm, int8, no relaxed SIMD", threads: 2, activations: "int8", platform: plainPlatform },
] as const;

for (const { name, ...choice } of variants) {
  backendCases({
    name,
    open: (sizes) => WasmBackend.open({ ...sizes, weights: tiny, taps: [], ...choice }),
    openChanged: (sizes, change) =>
      WasmBackend.open({ ...sizes, weights: change(tiny), taps: [], ...choice }),
  });
  draftCases({ name, open: (options) => WasmBackend.open({ ...options, ...choice }) });
}

async function compare(weights: Weights, activations: "f32" | "int8"): Promise<number> {
  const choice = { platform: nodePlatform, threads: 2, activations };
  return await worstDifference(weights, (sizes) => WasmBackend.open({ ...sizes, ...choice }));
}

for (const [changes, [bits, groupSize]] of modelCases) {
  const weights = randomWeights(tinyShape(changes), { seed: 11, bits, groupSize });
  const name = `${bits === "bf16" || bits === "f32" ? bits : `${bits}-bit g${groupSize}`} ${JSON.stringify(changes)}`;
  test(`wasm equals reference: ${name}`, async () => {
    expect(await compare(weights, "f32")).toBeLessThan(2e-4);
  });
}

for (const drafter of drafterCases) {
  test(`wasm's drafter equals reference's: ${drafterCaseName(drafter)}`, async () => {
    const choice = { platform: nodePlatform, threads: 2, activations: "f32" } as const;
    const open = (options: BackendOptions) => WasmBackend.open({ ...options, ...choice });
    expect(await worstDraftDifference(drafter, open)).toBeLessThan(2e-4);
  });
}

/** The same values, said to be stored as f32. */
function withWideScales(weights: Weights): Weights {
  const known = new Map<Matrix, Matrix>();
  const wide = (matrix: Matrix): Matrix =>
    matrix.kind === "affine" ? { ...matrix, scaleType: "f32" } : matrix;
  return {
    ...weights,
    matrix(path) {
      const matrix = weights.matrix(path);
      // A tied head stays the embedding's own.
      const same = known.get(matrix) ?? wide(matrix);
      known.set(matrix, same);
      return same;
    },
  };
}

test.each([
  [4, 32],
  [4, 64],
  [4, 128],
  [8, 64],
] as const)(
  "%i-bit weights, groups of %i: scales as bf16 or f32, the same bits",
  async (...format) => {
    const [bits, groupSize] = format;
    const shape = tinyShape({ hiddenSize: 128, intermediateSize: 256 });
    const weights = randomWeights(shape, { seed: 8, bits, groupSize });
    const sizes = { slots: 1, pages: 4, rowsMax: 64, drawsMax: 1, taps: [] };
    for (const activations of ["f32", "int8"] as const) {
      const choice = { ...sizes, platform: nodePlatform, threads: 2, activations };
      await using narrow = await WasmBackend.open({ ...choice, weights });
      await using wide = await WasmBackend.open({ ...choice, weights: withWideScales(weights) });
      const { weightBytes } = narrow.info.memory;
      expect(weightBytes).toBeLessThan(wide.info.memory.weightBytes);
      // One row, then several, then one tile and a part of the next.
      for (const rows of [1, 5, 50]) {
        const chunks = async (backend: WasmBackend) => {
          backend.open(slotId(0));
          return await feed(backend, 0, prompt.slice(0, 55), rows);
        };
        expect(await chunks(narrow), `${activations}, ${rows} rows`).toBe(await chunks(wide));
      }
    }
  },
);

// Blocks of the head that come out even, and one, two or three more than that.
test.each([300, 1024, 1025, 1029, 1033])(
  "a projection of %i rows with int8 activations stays near f32",
  async (vocabSize) => {
    for (const bits of [4, 8] as const) {
      // No layers: the head alone, where a deep random model would amplify every difference.
      const shape = tinyShape({ layerTypes: [], vocabSize });
      const weights = randomWeights(shape, { seed: 12, bits, groupSize: 32 });
      expect(await compare(weights, "int8")).toBeLessThan(0.02);
    }
  },
);

test.each(["bf16", "f32"] as const)(
  "a large head of %s weights, which lie last, is read to their end and no further",
  async (bits) => {
    // The memory's last page can't hide what 32 bytes a block too many would be.
    const shape = tinyShape({ layerTypes: [], hiddenSize: 24, vocabSize: 12_000 });
    const weights = randomWeights(shape, { seed: 12, bits });
    const sizes = { weights, slots: 1, pages: 1, rowsMax: 7, drawsMax: 7, taps: [] };
    const choice = { platform: nodePlatform, threads: 2, activations: "f32" } as const;
    await using reference = await ReferenceBackend.open(sizes);
    await using backend = await WasmBackend.open({ ...sizes, ...choice });
    // Panels of four, two and one.
    const plan = planPass([segment(0, 0, prompt.slice(0, 7), { draw: "all", candidates: 1 })]);
    const drawn = async (each: Backend) => {
      each.open(slotId(0));
      const { draws } = await each.read(each.verify(plan));
      return draws.map((draw) => (draw instanceof Error ? draw : draw.ids[0]));
    };
    expect(await drawn(backend)).toEqual(await drawn(reference));
  },
);

test.each([4, 8] as const)(
  "%i bits: a group of the largest int8 values and codes",
  async (bits) => {
    const shape = tinyShape({ layerTypes: [], hiddenSize: 128 });
    const weights = randomWeights(shape, { seed: 12, bits, groupSize: 128 });
    const largest = (matrix: Matrix): Matrix => {
      if (matrix.kind !== "affine") return matrix;
      return {
        ...matrix,
        async read(firstRow, count) {
          const { codes, scales, biases } = await matrix.read(firstRow, count);
          return { codes: codes.fill(0xff), scales: scales.fill(2 ** -8), biases: biases.fill(0) };
        },
      };
    };
    const matrix = (path: string) => largest(weights.matrix(path));
    expect(await compare({ ...weights, matrix }, "int8")).toBeLessThan(1e-3);
  },
);

test("a shape that the kernels can't divide is refused by field", async () => {
  const weights = randomWeights(tinyShape({ linearValueDim: 24 }), { seed: 1, bits: "bf16" });
  const sizes = { weights, slots: 1, pages: 1, rowsMax: 8, drawsMax: 1, taps: [] };
  const choice = { platform: nodePlatform, threads: 1, activations: "f32" } as const;
  await expect(WasmBackend.open({ ...sizes, ...choice })).rejects.toThrow(/linearValueDim.*24/);
});

test("a drafter that the kernels can't divide is refused by field", async () => {
  const shape = tinyDrafterShape(tiny.shape, { convolution: { groupSize: 2 } });
  const drafter = { weights: randomDrafterWeights(shape, { seed: 1, bits: 4, groupSize: 32 }) };
  const sizes = { weights: tiny, drafter, slots: 1, pages: 1, rowsMax: 8, drawsMax: 1, taps: [] };
  const choice = { platform: nodePlatform, threads: 1, activations: "f32" } as const;
  const open = WasmBackend.open({ ...sizes, ...choice });
  await expect(open).rejects.toThrow(/the drafter's groupSize .* multiple of 4, not 2/);
});

test("more memory than the machine has is refused with both numbers", async () => {
  const sizes = { weights: tiny, slots: 1, pages: 1, rowsMax: 8, drawsMax: 1, taps: [] };
  const choice = { platform: nodePlatform, threads: 1, activations: "f32" } as const;
  const open = WasmBackend.open({ ...sizes, ...choice, memoryBytesMax: 100_000 });
  await expect(open).rejects.toThrow(/needs 0\.\d MiB, 0\.1 MiB are free/);
});

test("a compute thread that dies loses the backend and fails its pass", async () => {
  const sizes = { weights: tiny, slots: 1, pages: 1, rowsMax: 8, drawsMax: 1, taps: [] };
  const failures: ((error: Error) => void)[] = [];
  const platform: WasmPlatform = {
    ...nodePlatform,
    spawn(setup, failed) {
      failures.push(failed);
      return nodePlatform.spawn(setup, failed);
    },
  };
  await using backend = await WasmBackend.open({
    ...sizes,
    platform,
    threads: 1,
    activations: "f32",
  });
  failures[0]!(new Error("killed by the test"));
  expect((await backend.lost).message).toMatch(/killed by the test/);
  backend.open(slotId(0));
  const plan = planPass([
    {
      ids: [1],
      start: 0,
      stateSlot: slotId(0),
      nextSlot: slotId(0),
      pages: [pageId(0)],
      draw: "last",
      candidates: 1,
    },
  ]);
  await expect(backend.read(backend.verify(plan))).rejects.toThrow(/killed by the test/);
});

test("a thread that doesn't start is an error, and those that did are ended", async () => {
  const sizes = { weights: tiny, slots: 1, pages: 1, rowsMax: 8, drawsMax: 1, taps: [] };
  let started = 0;
  let ended = 0;
  const platform: WasmPlatform = {
    ...nodePlatform,
    async spawn(setup, failed) {
      if (started === 2) throw new Error("EAGAIN");
      started++;
      const thread = await nodePlatform.spawn(setup, failed);
      return {
        async terminate() {
          ended++;
          await thread.terminate();
        },
      };
    },
  };
  const choice = { platform, threads: 3, activations: "f32" } as const;
  await expect(WasmBackend.open({ ...sizes, ...choice })).rejects.toThrow(
    /2 of 3 compute threads started: EAGAIN/,
  );
  expect(ended).toBe(2);
});

test("the kernels' page is the engine's", () => {
  expect(PAGE_ROWS).toBe(pageRows);
});

test("a snapshot of another shape is refused before anything is written", async () => {
  const sizes = { weights: tiny, slots: 1, pages: 2, rowsMax: 8, drawsMax: 1, taps: [] };
  const choice = { platform: nodePlatform, threads: 1, activations: "f32" } as const;
  await using backend = await WasmBackend.open({ ...sizes, ...choice });
  backend.open(slotId(0));
  const snapshot = await backend.save(slotId(0), [], 0);
  const long = { ...snapshot, state: new Float32Array(3 * snapshot.state.length) };
  expect(() => backend.restore(slotId(0), [], long)).toThrow(/floats of state/);
  const { kvDim, fullLayers } = derivedSizes(tiny.shape);
  const kv = new Float32Array(65 * kvDim * fullLayers);
  const two = { ...snapshot, rows: 65, keys: kv, values: kv };
  expect(() => backend.restore(slotId(0), [pageId(0)], two)).toThrow(/2 pages, restored into 1/);
});

test("sums that overflow fail the row instead of making it zero", async () => {
  const huge = { ...tiny, vector: async (path: string) => scaled(path, await tiny.vector(path)) };
  const scaled = (path: string, values: Float32Array) =>
    path === "layers.0.input_layernorm" ? values.map((value) => value * 1e25) : values;
  const sizes = { weights: huge, slots: 1, pages: 1, rowsMax: 8, drawsMax: 1, taps: [] };
  const choice = { platform: nodePlatform, threads: 1, activations: "f32" } as const;
  await using backend = await WasmBackend.open({ ...sizes, ...choice });
  backend.open(slotId(0));
  const request = { start: 0, stateSlot: slotId(0), nextSlot: slotId(0), pages: [pageId(0)] };
  const plan = planPass([{ ids: [1], ...request, draw: "last", candidates: 1 }]);
  const { draws } = await backend.read(backend.verify(plan));
  expect(draws[0]).toBeInstanceOf(NonFiniteLogitsError);
});

test("keeps that wait for a pass are done before what comes after them", async () => {
  const sizes = { weights: tiny, slots: 3, pages: 12, rowsMax: 8, drawsMax: 8, taps: [] };
  const choice = { platform: nodePlatform, threads: 2, activations: "f32" } as const;
  await using backend = await WasmBackend.open({ ...sizes, ...choice });
  const changes = { window: true, draw: "none", keepLogits: false } as const;
  const window = (slot: number) => backend.verify(planPass([segment(slot, 0, [1, 2], changes)]));
  for (const slot of [0, 1, 2]) backend.open(slotId(slot));
  const fresh = await printOf(backend, 0, 0);
  backend.keep(window(0), [[0, 1]]);
  const kept = await printOf(backend, 0, 2);
  backend.open(slotId(0));
  // Two keeps, and no pass between them.
  for (const handle of [1, 2].map(window)) backend.keep(handle, [[0, 1]]);
  expect(await printOf(backend, 1, 2)).toBe(kept);
  expect(await printOf(backend, 2, 2)).toBe(kept);
  backend.keep(window(0), [[0, 1]]);
  backend.open(slotId(0));
  expect(await printOf(backend, 0, 0)).toBe(fresh);
});

import { expect, test } from "vitest";
import { slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import type { ModelShape } from "../../model/shape.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { type RandomOptions, randomWeights } from "../../weights/random.ts";
import type { Matrix, Weights } from "../../weights/weights.ts";
import type { PassResult } from "../backend.ts";
import { generator, printOf, prompt, segment } from "../suite.cases.ts";
import { nodePlatform } from "./platform-node.ts";
import { WasmBackend, type WasmOptions } from "./wasm.ts";

type Activations = WasmOptions["activations"];
type Bits = RandomOptions["bits"];

/** Tokens of a prompt, and how many a pass: all kinds of panels and tiles, the last in part. */
const promptRows = 44;
const widths = [2, 3, 4, 5, 7, 8, 16, 33, promptRows];
const threadCounts = [1, 2, 3, 5, 8];

interface Fed {
  readonly draws: readonly PassResult["draws"][number][];
  readonly print: string;
}

/** Feeds the prompt in passes of so many rows. */
async function feed(backend: WasmBackend, rows: number): Promise<Fed> {
  const { vocabSize } = backend.info.shape;
  const ids = prompt.slice(0, promptRows).map((id) => id % vocabSize);
  backend.open(slotId(0));
  const draws: PassResult["draws"][number][] = [];
  for (let at = 0; at < promptRows; at += rows) {
    const plan = planPass([
      segment(0, at, ids.slice(at, at + rows), { draw: "all", candidates: 0 }),
    ]);
    draws.push(...(await backend.read(backend.verify(plan))).draws);
  }
  return { draws, print: await printOf(backend, 0, promptRows) };
}

/** Holds passes of every width, by any number of threads, to single rows by one. */
async function holdToSingleRows(weights: Weights, activations: Activations): Promise<void> {
  const sizes = { slots: 1, pages: 4, rowsMax: 64, drawsMax: 64, taps: [] };
  const choice = { ...sizes, weights, platform: nodePlatform, activations };
  let alone: Fed | null = null;
  for (const threads of threadCounts) {
    await using backend = await WasmBackend.open({ ...choice, threads });
    alone ??= await feed(backend, 1);
    for (const rows of widths) {
      const label = `${rows} rows a pass, ${threads} threads`;
      expect(await feed(backend, rows), label).toEqual(alone);
    }
  }
}

const few: Partial<ModelShape> = { layerTypes: ["linear", "full"] };
const cases: readonly (readonly [Partial<ModelShape>, readonly Activations[], readonly Bits[]])[] =
  [
    [{ vocabSize: 303 }, ["f32", "int8"], [4, 8, "bf16", "f32"]],
    // Runs of blocks that leave one, two and three behind their quarters.
    [{ ...few, vocabSize: 1025, intermediateSize: 224 }, ["int8"], [4, 8]],
    [{ ...few, vocabSize: 1029, linearKeyHeads: 1, linearValueHeads: 3 }, ["int8"], [4, 8]],
    [{ ...few, vocabSize: 1033, linearValueDim: 48, kvHeadCount: 1 }, ["int8"], [4, 8]],
    // Inputs of 8 columns, whose 32 sums need more room than a row of theirs.
    [{ ...few, hiddenSize: 8 }, ["f32"], ["bf16", "f32"]],
    [{ ...few, intermediateSize: 8 }, ["f32"], ["bf16", "f32"]],
    [{ ...few, headDim: 8, headCount: 1, kvHeadCount: 1 }, ["f32"], ["bf16", "f32"]],
  ];

for (const [changes, activations, formats] of cases) {
  for (const read of activations) {
    test.each(formats)(
      `${read}, %s-bit weights ${JSON.stringify(changes)}: a row's bits are its own`,
      async (bits) => {
        const weights = randomWeights(tinyShape(changes), { seed: 6, bits, groupSize: 32 });
        await holdToSingleRows(weights, read);
      },
    );
  }
}

type Choose = <T>(items: readonly T[]) => T;

/** Every matrix in a format of its own. */
function mixedWeights(shape: ModelShape, seed: number, pick: Choose): Weights {
  const formatted = Array.from({ length: 6 }, () =>
    randomWeights(shape, {
      seed,
      bits: pick([2, 3, 4, 4, 5, 6, 8, 8, "bf16", "f32"]),
      groupSize: pick([32, 64, 128]),
    }),
  );
  const matrices = new Map<string, Matrix>();
  return {
    ...formatted[0]!,
    matrix(path) {
      const own = path === "lm_head" && shape.tiedHead ? "embed_tokens" : path;
      const matrix = matrices.get(own) ?? pick(formatted).matrix(own);
      matrices.set(own, matrix);
      return matrix;
    },
  };
}

test.each(["f32", "int8"] as const)("%s: a row's bits are its own in odd models", async (read) => {
  for (let model = 0; model < 5; model++) {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.log(`${read}: an odd model of seed ${seed}`);
    const random = generator(seed);
    const pick: Choose = (items) => items[Math.floor(random() * items.length)]!;
    const keyHeads = pick([1, 2, 3]);
    const kvHeads = pick([1, 2, 3]);
    const shape = tinyShape({
      vocabSize: 17 + Math.floor(random() * 500),
      hiddenSize: pick([8, 24, 32, 72, 96, 128, 160, 256]),
      intermediateSize: pick([8, 32, 40, 64, 192, 256, 512]),
      layerTypes: Array.from({ length: 3 }, () => pick(["linear", "full"])),
      headCount: kvHeads * pick([1, 2, 3]),
      kvHeadCount: kvHeads,
      headDim: pick([8, 24, 32, 64, 72]),
      linearKeyHeads: keyHeads,
      linearValueHeads: keyHeads * pick([1, 2, 3]),
      linearKeyDim: pick([8, 24, 32, 64]),
      linearValueDim: pick([16, 32, 48]),
      convTaps: pick([1, 2, 4, 7]),
      tiedHead: pick([true, false]),
    });
    await holdToSingleRows(mixedWeights(shape, seed, pick), read);
  }
});

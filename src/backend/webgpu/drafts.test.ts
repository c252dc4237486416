import { expect, test } from "vitest";
import { MemoryError } from "../../errors.ts";
import { pageRows } from "../../limits.ts";
import { drafterSizes, featureRowsOf, tinyDrafterShape } from "../../model/drafter-shape.ts";
import { randomDrafterWeights } from "../../weights/random-drafter.ts";
import type { BackendOptions } from "../backend.ts";
import { drafterCaseName, drafterCases, worstDraftDifference } from "../drafters.cases.ts";
import { draftCases } from "../drafts.cases.ts";
import { arithmeticsHere, missingGpu, sharedGpu, tinyWeights } from "./gpu.cases.ts";
import type { KvType } from "./kv-pages.ts";
import type { Arithmetic } from "./projection-layout.ts";
import { stubPlatform } from "./stub-device.cases.ts";
import { WebgpuBackend } from "./webgpu.ts";

const choice = { adapter: null, synthetic: false } as const;

/** What a drafter is computed and kept with. */
interface Variant {
  readonly kv: KvType;
  /** How far it may be from the reference: small random models magnify a rounding to f16 a hundredfold. */
  readonly bound: number;
}

const variants: Readonly<Record<Arithmetic, Variant>> = {
  f32: { kv: "f32", bound: 2e-4 },
  f16: { kv: "f16", bound: 0.1 },
};

const reason = await missingGpu();
if (reason !== null) test.skip(`webgpu drafts: ${reason}`, () => {});

for (const activations of reason === null ? await arithmeticsHere() : []) {
  const { kv, bound } = variants[activations];
  const open = (options: BackendOptions) =>
    WebgpuBackend.open({ ...options, ...choice, platform: sharedGpu, activations, kv });
  const name = `webgpu ${activations}, ${kv} KV`;
  draftCases({ name, open });

  // Sizes that the classes take alike need no second look.
  const cases = drafterCases.filter((_, at) => activations === "f32" || at % 4 === 0);
  for (const each of cases) {
    test(`${name}: its drafter is near reference's: ${drafterCaseName(each)}`, async () => {
      expect(await worstDraftDifference(each, open)).toBeLessThan(bound);
    });
  }
}

test("a drafter's memory is admitted before it is taken", async () => {
  const shape = tinyDrafterShape(tinyWeights.shape);
  const drafter = { weights: randomDrafterWeights(shape, { seed: 1, bits: 4, groupSize: 32 }) };
  const sizes = { slots: 3, pages: 12, rowsMax: 64, drawsMax: 8, taps: [] };
  const options = { ...sizes, ...choice, weights: tinyWeights, platform: stubPlatform };
  const memoryOf = async (more: Partial<BackendOptions>) => {
    await using backend = await WebgpuBackend.open({ ...options, ...more });
    return backend.info.memory;
  };
  const plain = await memoryOf({});
  const whole = await memoryOf({ drafter });
  const { kvDim, featureDim } = drafterSizes(shape);
  const features = 4 * 3 * featureRowsOf(64) * featureDim;
  const kv = 4 * 2 * 12 * pageRows * shape.layers.length * kvDim;
  expect(whole.stateBytes - plain.stateBytes).toBe(features);
  expect(whole.kvBytes - plain.kvBytes).toBe(kv);
  expect(whole.weightBytes - plain.weightBytes).toBeGreaterThan(drafter.weights.storedBytes);
  const bytes = Object.values(whole).reduce((sum, part) => sum + part, 0);
  await memoryOf({ drafter, memoryBytesMax: bytes });
  // Small tensors and parameters are all that is not asked for.
  const less = { drafter, memoryBytesMax: bytes - features };
  await expect(memoryOf(less)).rejects.toThrow(MemoryError);
});

test("a drafter whose vectors the kernels can't divide is refused by field", async () => {
  const sizes = { slots: 1, pages: 1, rowsMax: 8, drawsMax: 1, taps: [] };
  for (const [changes, message] of [
    [{ convolution: { groupSize: 2 } }, /groupSize to be a multiple of 4, not 2/],
    [{ headDim: 258 }, /up to 256 dims a head, not 258/],
    [{ intermediateSize: 162 }, /intermediateSize to be a multiple of 4, not 162/],
  ] as const) {
    const shape = tinyDrafterShape(tinyWeights.shape, changes);
    const drafter = { weights: randomDrafterWeights(shape, { seed: 1, bits: "bf16" }) };
    const options = { ...sizes, ...choice, weights: tinyWeights, drafter, platform: stubPlatform };
    await expect(WebgpuBackend.open(options)).rejects.toThrow(message);
  }
});

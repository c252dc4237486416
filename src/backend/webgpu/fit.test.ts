import { expect, test } from "vitest";
import { derivedSizes } from "../../model/shape.ts";
import { matrixBytes } from "../../weights/matrix-bytes.ts";
import type { BackendOptions } from "../backend.ts";
import { memoryCases, nanoCase, releasedCase } from "../memory.cases.ts";
import { sumOf } from "../memory-use.ts";
import { FaultyGpu, type GpuFaults } from "./faulty-gpu.cases.ts";
import { missingGpu } from "./gpu.cases.ts";
import type { KvType } from "./kv-pages.ts";
import { webgpuPlanner } from "./planner.ts";
import type { GpuPlatform } from "./platform.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import type { Arithmetic } from "./projection-layout.ts";
import { stubPlatform } from "./stub-device.cases.ts";
import { WebgpuBackend } from "./webgpu.ts";

const reason = await missingGpu();

interface Choice {
  readonly activations: Arithmetic;
  readonly kv: KvType;
}

/**
 * Expects that a plan of the options is what a backend takes, and that its buffers are as large as it says.
 * @param bufferBytes the most that one may have
 * @returns how many there are
 */
async function expectTrue(
  platform: GpuPlatform,
  options: BackendOptions,
  choice: Choice,
  bufferBytes: number | null = null,
): Promise<number> {
  const gpu = new FaultyGpu(platform, limited(bufferBytes));
  const common = { ...choice, platform: gpu, adapter: null };
  const planner = await webgpuPlanner({ ...common, machineBytes: null });
  const { memory, refusal } = await planner.plan(options);
  expect(refusal).toBeNull();
  // A stub makes nothing of synthetic weights, and needn't be given any.
  const synthetic = platform === stubPlatform;
  await using backend = await WebgpuBackend.open({ ...options, ...common, synthetic });
  expect(memory).toEqual(backend.info.memory);
  expect(sumOf(memory)).toBe([...gpu.live].reduce((sum, { size }) => sum + size, 0));
  return backend.liveBuffers;
}

const limited = (bytes: number | null): GpuFaults =>
  bytes === null ? {} : { limits: { maxBufferSize: bytes, maxStorageBufferBindingSize: bytes } };

/** The least that all but matrices, which are split, leave a buffer. */
async function leastBufferBytes(options: BackendOptions, choice: Choice): Promise<number> {
  for (let bytes = 2 ** 12; ; bytes *= 2) {
    const platform = new FaultyGpu(stubPlatform, limited(bytes));
    const common = { ...choice, platform, adapter: null, machineBytes: null };
    const planner = await webgpuPlanner(common);
    if ((await planner.plan(options)).refusal === null) return bytes;
  }
}

for (const activations of ["f32", "f16"] as const) {
  test(`${activations}: a plan is what is taken, to the byte`, async () => {
    let split = 0;
    for (const [at, options] of memoryCases().entries()) {
      const choice = { activations, kv: at % 2 === 0 ? "f32" : "f16" } as const;
      await expectTrue(stubPlatform, options, choice);
      if (at % 4 > 0) continue;
      const gdnPath = at % 8 > 0 ? ("copy" as const) : ("inPlace" as const);
      const least = { ...options, ...{ slots: 1, pages: 1, rowsMax: 8, drawsMax: 1, gdnPath } };
      const whole = await expectTrue(stubPlatform, least, choice);
      const bytes = await leastBufferBytes(least, choice);
      if ((await expectTrue(stubPlatform, least, choice, bytes)) > whole) split++;
    }
    expect(split).toBeGreaterThan(2);
  }, 180_000);

  test.skipIf(reason !== null)(`${activations}: and of nano, on a GPU`, async ({ skip }) => {
    const able = await webgpuPlanner({ ...gpuHere, activations }).catch(() => null);
    if (!able) return skip();
    await expectTrue(nodeGpuPlatform, await nanoCase(), { activations, kv: "f32" });
  });
}

const gpuHere = { platform: nodeGpuPlatform, adapter: null, machineBytes: null } as const;

const large = { platform: stubPlatform, adapter: null, machineBytes: null } as const;

/**
 * The arithmetic of the released sizes, in GB of 10^9 bytes: 4-bit weights that a token reads, and all of
 * them; the recurrent state, read and written; and bytes of keys and values a token, of 16 bits.
 */
const released = [
  ["0.8b", 0.423, 0.423, 37.7e6, 12_288],
  ["2b", 1.058, 1.058, 37.7e6, 12_288],
  ["4b", 2.365, 2.365, 100.7e6, 32_768],
  ["9b", 4.464, 5.036, 100.7e6, 32_768],
  ["27b", 14.412, 15.128, 302.0e6, 65_536],
] as const;

test.each(released)("the plan of a %s is the arithmetic of its shape", async (name, ...numbers) => {
  const [readGb, allGb, stateTraffic, kvBytes] = numbers;
  const options = releasedCase(name, 4);
  const { shape, matrix } = options.weights;
  const planner = await webgpuPlanner({ ...large, activations: "f16", kv: "f16" });
  const { memory } = await planner.plan(options);
  const within = (found: number, expected: number, share: number) =>
    expect(Math.abs(found / expected - 1), `${found} for ${expected}`).toBeLessThan(share);
  within(memory.weightBytes / 1e9, allGb, 0.02);
  // What isn't read is the embedding, where the head is another matrix.
  const embedding = shape.tiedHead ? 0 : matrixBytes(matrix("embed_tokens"));
  within((memory.weightBytes - embedding) / 1e9, readGb, 0.02);
  const { linearLayers, stateFloats, historyFloats } = derivedSizes(shape);
  within(2 * 4 * linearLayers * stateFloats, stateTraffic, 0.002);
  // Beside the state there are two places for the convolution's history.
  expect(memory.stateBytes).toBe(4 * linearLayers * (stateFloats + 2 * historyFloats));
  expect(memory.kvBytes).toBe(512 * 64 * kvBytes);
  const wide = await webgpuPlanner({ ...large, activations: "f16", kv: "f32" });
  expect((await wide.plan(options)).memory.kvBytes).toBe(2 * memory.kvBytes);
});

test("the plan of a 27B's drafter is the arithmetic of its shape", async () => {
  const of = async (activations: Arithmetic, drafted: boolean) => {
    const planner = await webgpuPlanner({ ...large, activations, kv: "f16" });
    return (await planner.plan(releasedCase("27b", 4, drafted))).memory;
  };
  const memory = await of("f32", false);
  const drafted = await of("f32", true);
  const bytes = drafted.weightBytes - memory.weightBytes;
  expect(Math.abs(bytes / 1.01e9 - 1)).toBeLessThan(0.02);
  // In f16 its matrices of keys and values lie beside those of contexts, and beside those of queries.
  const twice = 5 * 2 * 1024 * 5120 * (4.5 / 8);
  const f16 = (await of("f16", true)).weightBytes - (await of("f16", false)).weightBytes;
  expect(Math.abs(f16 / (bytes + twice) - 1)).toBeLessThan(0.001);
  // Five layers of eight heads.
  expect(drafted.kvBytes - memory.kvBytes).toBe(512 * 64 * 20_480);
});

test("an adapter that computes in this machine's memory has what that has", async () => {
  const software = new FaultyGpu(stubPlatform);
  const gpu = software.gpu(null);
  const adapter = (await gpu.requestAdapter())!;
  const fallback: GpuPlatform = {
    ...stubPlatform,
    gpu: () =>
      ({
        requestAdapter: async () => ({
          ...{ features: adapter.features, limits: adapter.limits },
          info: { ...adapter.info, isFallbackAdapter: true },
        }),
      }) as unknown as GPU,
  };
  const common = { adapter: null, machineBytes: 123 };
  expect((await webgpuPlanner({ ...common, platform: fallback })).roomBytes).toBe(123);
  expect((await webgpuPlanner({ ...common, platform: stubPlatform })).roomBytes).toBeNull();
});

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { nextTask } from "../../clock.ts";
import { BackendError, BackendLostError, MemoryError, messageOf } from "../../errors.ts";
import { pageId, slotId, type TokenId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { RoundLoop } from "../../rounds/loop.ts";
import { plainSampling } from "../../sampling/params.ts";
import { stateFingerprint } from "../../state/fingerprint.ts";
import { randomWeights } from "../../weights/random.ts";
import { firstRows } from "../windows.ts";
import { openDevice } from "./device.ts";
import { DeviceMemory } from "./device-memory.ts";
import { FaultyGpu, type GpuFaults } from "./faulty-gpu.cases.ts";
import { checkFit } from "./fit.ts";
import { missingGpu, shortReply, tinyWeights } from "./gpu.cases.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import { stubPlatform } from "./stub-device.cases.ts";
import { WebgpuBackend, type WebgpuOptions } from "./webgpu.ts";

const reason = await missingGpu();

const onePlan = planPass([
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

/** The shape of models/nano. */
const nanoShape = tinyShape({
  vocabSize: 8192,
  hiddenSize: 384,
  intermediateSize: 1152,
  layerTypes: ["linear", "linear", "linear", "full", "linear", "linear", "linear", "full"],
  headDim: 128,
  rotaryDim: 32,
  linearKeyDim: 128,
  linearValueDim: 128,
  tiedHead: true,
});

function open(gpu: FaultyGpu, changes: Partial<WebgpuOptions> = {}): Promise<WebgpuBackend> {
  return WebgpuBackend.open({
    weights: tinyWeights,
    slots: 1,
    pages: 1,
    rowsMax: 8,
    drawsMax: 1,
    taps: [],
    platform: gpu,
    adapter: null,
    synthetic: false,
    ...changes,
  });
}

const faulty = (faults: GpuFaults = {}, shared = false) =>
  new FaultyGpu(nodeGpuPlatform, faults, shared);

/** What was thrown, or null. */
const caught = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => null,
    (error) => error,
  );

const onGpu = test.skipIf(reason !== null);

test("no room for the n-th buffer, for every n of nano: a typed error, and nothing is kept", async () => {
  // Without arithmetic: there are hundreds of openings.
  const gpu = new FaultyGpu(stubPlatform);
  const weights = randomWeights(nanoShape, { seed: 1, bits: 4, groupSize: 64 });
  const options = { weights, synthetic: true };
  for (const activations of ["f32", "f16"] as const) {
    gpu.buffers = 0;
    gpu.faults = {};
    await using whole = await open(gpu, { ...options, activations });
    const { buffers } = gpu;
    const { size } = gpu.live;
    expect(size).toBe(whole.liveBuffers);
    expect(buffers).toBeGreaterThan(100);
    for (let n = 1; n <= buffers; n++) {
      gpu.buffers = 0;
      gpu.faults = { refuse: n };
      const error = await caught(open(gpu, { ...options, activations }));
      expect(error, `buffer ${n}`).toBeInstanceOf(MemoryError);
      expect(messageOf(error)).toMatch(
        /^The model needs [\d.]+ MiB, [\d.]+ MiB are free\. (No context|What would fit)/,
      );
      expect(gpu.live.size, `buffer ${n}`).toBe(size);
    }
    gpu.faults = {};
    await using again = await open(gpu, { ...options, activations });
    expect(again.liveBuffers).toBe(size);
  }
}, 180_000);

test("a buffer that is refused later is named, with what it asked for", async () => {
  const gpu = new FaultyGpu(stubPlatform, { refuse: 2 });
  const open = await openDevice(gpu, null);
  const memory = new DeviceMemory(open);
  await memory.create("first", 3 * 2 ** 20, 0);
  const refused = await caught(memory.create("readback", 2 ** 20, 0));
  expect(refused).toBeInstanceOf(MemoryError);
  expect(messageOf(refused)).toMatch(
    /^The device refused 1\.0 MiB for "readback", beside 3\.0 MiB that it has given\. End what/,
  );
});

onGpu("no room to read into: the pass fails, and the next request is right", async () => {
  const gpu = faulty({}, true);
  const whole = await open(gpu);
  const atStart = gpu.buffers;
  const right = await shortReply(whole);
  const inAll = gpu.buffers;
  await whole[Symbol.asyncDispose]();
  expect(inAll).toBeGreaterThan(atStart + 1);
  for (let n = atStart + 1; n <= inAll; n++) {
    gpu.buffers = 0;
    gpu.faults = { refuse: n };
    await using backend = await open(gpu);
    const error = await caught(shortReply(backend));
    expect(error).toBeInstanceOf(MemoryError);
    expect(messageOf(error)).toMatch(/^The device refused [\d.]+ MiB for "/);
    expect(await shortReply(backend)).toEqual(right);
  }
  expect([gpu.live.size, gpu.mapping]).toEqual([0, 0]);
});

onGpu("no room to read into: what another slot keeps is kept all the same", async () => {
  const gpu = faulty({}, true);
  await using backend = await open(gpu, { slots: 2, pages: 2 });
  const ids = Array.from({ length: 16 }, (_, i) => (i * 53 + 11) % 300);
  const part = (slot: number, count: number, window: boolean) => ({
    ids: ids.slice(0, count),
    start: 0,
    stateSlot: slotId(slot),
    nextSlot: slotId(slot),
    pages: [pageId(slot)],
    draw: "none" as const,
    candidates: 1,
    window,
  });
  const after = async (slot: number) =>
    stateFingerprint(await backend.save(slotId(slot), [pageId(slot)], 4));
  for (const slot of [0, 1]) backend.open(slotId(slot));
  await backend.read(backend.verify(planPass([part(1, 4, false)])));
  const right = await after(1);
  const handle = backend.verify(planPass([part(0, 8, true)]));
  await backend.read(handle);
  backend.keep(handle, [firstRows(4)]);
  gpu.faults = { refuse: gpu.buffers + 1 };
  // All rows of KV and a wider state than any before: the staging buffer must be a new one.
  const refused = await caught(backend.save(slotId(1), [pageId(1), pageId(0)], 128));
  expect(refused).toBeInstanceOf(MemoryError);
  gpu.faults = {};
  expect(await after(0)).toBe(right);
});

test("what can't fit is refused before any of it is taken, with what would fit", async () => {
  const options = {
    slots: 4,
    pages: 4 * 64,
    rowsMax: 8,
    drawsMax: 4,
    taps: [],
    arithmetic: "f32",
    weights: tinyWeights,
  } as const;
  const room = (bytes: number, bufferBytes: number) => ({ bytes: bytes * 2 ** 20, bufferBytes });
  const wide = 2 ** 30;
  const told = async (bytes: number, bufferBytes = wide) =>
    messageOf(await caught(checkFit(options, room(bytes, bufferBytes))));
  expect(await caught(checkFit(options, room(40, wide)))).toBeNull();
  const short = await told(5);
  const [, tokens] =
    /^The model needs [\d.]+ MiB, 5\.0 MiB are free\. What would fit: keys and values of (\d+) tokens, or one slot with those of \d+ tokens\.$/.exec(
      short,
    )!;
  const pages = Number(tokens) / 64;
  expect(pages).toBeGreaterThan(1);
  // Streams share them: a single one may have all.
  const fitting = (count: number) => checkFit({ ...options, pages: count }, room(5, wide));
  expect(await caught(fitting(pages))).toBeNull();
  expect(await caught(fitting(pages + 1))).toBeInstanceOf(MemoryError);
  expect(await told(0.5)).toMatch(/0\.5 MiB are free\. No context is small enough: take a smaller/);
  expect(await told(40, 2 ** 20)).toMatch(
    /^"\w+ 0" would be one buffer of [\d.]+ MiB, and this device binds at most 1\.0 MiB\. What would/,
  );
});

onGpu("a kernel that doesn't compile is named, and nothing is kept", async () => {
  const gpu = faulty({}, true);
  const names = new Set<string>();
  gpu.faults = {
    code: (label, code) => {
      names.add(label);
      return code;
    },
  };
  await (await open(gpu))[Symbol.asyncDispose]();
  expect(names.size).toBeGreaterThan(8);
  for (const name of names) {
    gpu.faults = { code: (label, code) => (label === name ? `${code}\nnonsense` : code) };
    const error = await caught(open(gpu));
    expect(error).toBeInstanceOf(BackendError);
    expect(error).not.toBeInstanceOf(BackendLostError);
    const told = new RegExp(`^The kernel ${name} does not compile: line \\d+: `);
    expect(messageOf(error)).toMatch(told);
    expect(gpu.live.size).toBe(0);
  }
  gpu.faults = {};
  await using next = await open(gpu);
  expect(next.liveBuffers).toBeGreaterThan(20);
});

onGpu(
  "work that the device refuses is a loss, because nobody knows what its buffers hold",
  async () => {
    const gpu = faulty();
    await using backend = await open(gpu);
    gpu.devices[0]!.createBuffer({ label: "wrong", size: 16, usage: 3 });
    expect((await backend.lost).message).toMatch(/^The GPU refused work: .*wrong/s);
    expect(await caught(shortReply(backend))).toBeInstanceOf(BackendLostError);
  },
);

onGpu(
  "lost before any call while loading: a typed error, nothing kept, and the next is right",
  async () => {
    const gpu = faulty();
    const right = await open(gpu).then(async (backend) => {
      await using whole = backend;
      return await shortReply(whole);
    });
    gpu.calls = 0;
    await (await open(gpu))[Symbol.asyncDispose]();
    const { calls } = gpu;
    // Every call would take minutes: a dozen, spread evenly, the first and the last among them.
    for (let part = 0; part <= 11; part++) {
      const at = 1 + Math.round((part / 11) * (calls - 1));
      gpu.calls = 0;
      gpu.faults = { loseAt: at };
      const error = await caught(open(gpu));
      expect(error, `call ${at} of ${calls}`).toBeInstanceOf(BackendLostError);
      expect([gpu.live.size, gpu.mapping]).toEqual([0, 0]);
    }
    gpu.faults = {};
    await using next = await open(gpu);
    expect(await shortReply(next)).toEqual(right);
  },
);

onGpu(
  "lost at any call of a reply: a typed error, nothing kept, and a new device is right",
  async () => {
    const gpu = faulty();
    const first = await open(gpu);
    gpu.calls = 0;
    const right = await shortReply(first);
    const { calls } = gpu;
    const saved = await first.save(slotId(0), [], 0);
    await first[Symbol.asyncDispose]();
    expect(calls).toBeGreaterThan(10);
    for (let part = 0; part <= 7; part++) {
      const at = 1 + Math.round((part / 7) * (calls - 1));
      gpu.faults = {};
      const backend = await open(gpu);
      gpu.calls = 0;
      gpu.faults = { loseAt: at };
      expect(await caught(shortReply(backend)), `call ${at} of ${calls}`).toBeInstanceOf(
        BackendLostError,
      );
      expect((await backend.lost).message).toMatch(/^The GPU device was lost \(destroyed\)/);
      for (const verb of [
        () => backend.open(slotId(0)),
        () => backend.verify(onePlan),
        () => backend.restore(slotId(0), [], saved),
      ]) {
        expect(verb).toThrow(BackendLostError);
      }
      await expect(backend.save(slotId(0), [pageId(0)], 1)).rejects.toThrow(BackendLostError);
      backend.release(slotId(0));
      await backend[Symbol.asyncDispose]();
      expect([backend.liveBuffers, gpu.live.size, gpu.mapping]).toEqual([0, 0, 0]);
    }
    gpu.faults = {};
    await using next = await open(gpu);
    expect(await shortReply(next)).toEqual(right);
  },
);

onGpu(
  "rounds whose device is lost serve the next request on a new one",
  async () => {
    const gpu = faulty();
    const openAgain = () => open(gpu, { pages: 2 });
    await using loop = new RoundLoop(await openAgain(), { chunkRows: 4, openAgain });
    const ask = (maxTokens: number, onToken = () => {}) =>
      new Promise<unknown>((resolve, reject) => {
        const ids: TokenId[] = [];
        const sampling = { ...plainSampling, temperature: 0, seed: 1n };
        const promptIds = [5, 4, 3, 2, 1, 7];
        loop.submit(
          { promptIds, maxTokens, sampling, eosIds: new Set(), fingerprint: true, draft: false },
          {
            prefilled: () => {},
            token: (id) => {
              onToken();
              return ids.push(id) < 0;
            },
            finished: ({ error, stateSha }) => (error ? reject(error) : resolve({ ids, stateSha })),
          },
        );
      });
    const lose = () => gpu.devices.at(-1)!.destroy();
    const right = await ask(4);
    expect(await caught(ask(100, lose))).toBeInstanceOf(BackendLostError);
    expect(loop.condition).toMatchObject({ status: "lost", serving: true });
    expect(await ask(4)).toEqual(right);
    expect(loop.condition.status).toBe("ok");
    // While nobody waits; and the device that comes next is lost while the weights are loaded.
    lose();
    await nextTask();
    gpu.calls = 0;
    gpu.faults = { loseAt: 80 };
    const failed = await caught(ask(4));
    expect(failed).toBeInstanceOf(BackendLostError);
    expect(messageOf(failed)).toMatch(/lost \(destroyed\).* It could not be opened again: .*lost/);
    expect(loop.condition).toMatchObject({ status: "lost", serving: false });
    gpu.faults = {};
    expect(await ask(4)).toEqual(right);
    expect(gpu.devices).toHaveLength(4);
    await loop[Symbol.asyncDispose]();
    expect([gpu.live.size, gpu.mapping]).toEqual([0, 0]);
  },
  180_000,
);

onGpu("a process ends well though its device was lost in the middle of everything", () => {
  const file = (name: string) => JSON.stringify(join(import.meta.dirname, name));
  const script = `
    const { setImmediate: atOnce } = await import("node:timers");
    const { FaultyGpu } = await import(${file("faulty-gpu.cases.ts")});
    const { nodeGpuPlatform } = await import(${file("platform-node.ts")});
    const { shortReply, tinyWeights: weights } = await import(${file("gpu.cases.ts")});
    const { WebgpuBackend } = await import(${file("webgpu.ts")});
    const sizes = { weights, slots: 1, pages: 1, rowsMax: 8, drawsMax: 1, taps: [] };
    const open = (platform) =>
      WebgpuBackend.open({ ...sizes, platform, adapter: null, synthetic: false });
    const told = [];
    const tell = (error) => told.push(error.code);
    await open(new FaultyGpu(nodeGpuPlatform, { loseAt: 100 })).catch(tell);
    for (const turns of [0, 1, 2]) {
      const gpu = new FaultyGpu(nodeGpuPlatform);
      const backend = await open(gpu);
      shortReply(backend).catch(tell);
      backend.save(0, [0], 1).catch(tell);
      for (let turn = 0; turn < turns; turn++) await new Promise(atOnce);
      gpu.devices[0].destroy();
    }
    process.on("exit", () => console.log(told.join()));
  `;
  const ended = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  expect(ended).toMatchObject({ status: 0, signal: null });
  expect(ended.stdout.trim()).toBe(new Array(7).fill("backend_lost").join());
});

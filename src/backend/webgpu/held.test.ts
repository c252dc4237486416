import { expect, test } from "vitest";
import { BackendLostError, InvariantError, MemoryError } from "../../errors.ts";
import { pageId, slotId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { derivedSizes } from "../../model/shape.ts";
import { stateFingerprint } from "../../state/fingerprint.ts";
import type { HeldState } from "../backend.ts";
import { openDevice } from "./device.ts";
import { DeviceMemory } from "./device-memory.ts";
import { FaultyGpu } from "./faulty-gpu.cases.ts";
import { missingGpu, shortReply, tinyWeights } from "./gpu.cases.ts";
import { HeldBuffers, layOut } from "./held-buffers.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import { stubPlatform } from "./stub-device.cases.ts";
import { WebgpuBackend } from "./webgpu.ts";

const reason = await missingGpu();
const onGpu = test.skipIf(reason !== null);
const { linearLayers, stateFloats, historyFloats } = derivedSizes(tinyWeights.shape);
const tinyBytes = 4 * linearLayers * (stateFloats + historyFloats);
const pages = [pageId(0)];

const open = (gpu: FaultyGpu): Promise<WebgpuBackend> =>
  WebgpuBackend.open({
    weights: tinyWeights,
    slots: 2,
    pages: 1,
    rowsMax: 8,
    drawsMax: 1,
    taps: [],
    platform: gpu,
    adapter: null,
    synthetic: false,
  });

/** Feeds slot 0 rows [start, start + 4) of a stream. */
function feed(backend: WebgpuBackend, start: number): void {
  const ids = [5, 4, 3, 2].map((id) => (id * (start + 7)) % 300);
  const slots = { stateSlot: slotId(0), nextSlot: slotId(0) };
  const rows = { ids, start, pages, draw: "none", candidates: 1 } as const;
  void backend.verify(planPass([{ ...rows, ...slots }]));
}

const printOf = async (backend: WebgpuBackend, of: number | HeldState, rows: number) => {
  const source = typeof of === "number" ? slotId(of) : of;
  return stateFingerprint(await backend.save(source, pages, rows));
};

test("parts are laid out in as few buffers as a limit allows, in their order", () => {
  expect(layOut([8, 8, 4], 1024)).toEqual({
    parts: [
      { buffer: 0, offset: 0, bytes: 8 },
      { buffer: 0, offset: 8, bytes: 8 },
      { buffer: 0, offset: 16, bytes: 4 },
    ],
    buffers: [20],
  });
  // Buffers are taken in steps of 16 bytes.
  const narrow = layOut([16, 12, 4, 4, 8], 36);
  expect(narrow.buffers).toEqual([32, 12]);
  expect(narrow.parts.map(({ buffer, offset }) => [buffer, offset])).toEqual([
    [0, 0],
    [0, 16],
    [0, 28],
    [1, 0],
    [1, 4],
  ]);
  expect(layOut([], 16)).toEqual({ parts: [], buffers: [] });
});

test("no room for any of several buffers: a typed error, and none of them is kept", async () => {
  const gpu = new FaultyGpu(stubPlatform, { limits: { maxBufferSize: 64 } });
  const device = await openDevice(gpu, null);
  const memory = new DeviceMemory(device);
  const states = new HeldBuffers(device, memory, [48, 64, 16, 16]);
  const buffer = await memory.create("states", 144, 0);
  const state = [48, 64, 16, 16].map((bytes) => ({ buffer, offset: 0, bytes }));
  for (const refuse of [2, 3, 4]) {
    gpu.buffers = 1;
    gpu.faults.refuse = refuse;
    await expect(states.hold(state)).rejects.toThrow(MemoryError);
    expect([memory.live, memory.bytes, gpu.live.size]).toEqual([1, 144, 1]);
  }
  const held = await states.hold(state);
  expect([memory.live, held.bytes]).toEqual([4, 144]);
  expect(new Set(states.partsOf(held).map((part) => part.buffer)).size).toBe(3);
});

onGpu("no room for a held state: both numbers are told, and the backend goes on", async () => {
  const gpu = new FaultyGpu(nodeGpuPlatform);
  await using backend = await open(gpu);
  const right = await shortReply(backend);
  backend.open(slotId(0));
  feed(backend, 0);
  const before = await printOf(backend, 0, 4);
  const { liveBuffers } = backend;
  gpu.faults = { refuse: gpu.buffers + 1 };
  const refused = backend.hold(slotId(0));
  // Work that comes before the refusal is told is done all the same.
  backend.open(slotId(1));
  await expect(refused).rejects.toThrow(MemoryError);
  await expect(refused).rejects.toThrow(
    /^The device refused [\d.]+ MiB for "held state", beside [\d.]+ MiB that it has given\. End/,
  );
  expect([backend.liveBuffers, gpu.live.size]).toEqual([liveBuffers, liveBuffers]);
  expect(await printOf(backend, 0, 4)).toBe(before);
  const held = await backend.hold(slotId(0));
  expect(held.bytes).toBe(16 * Math.ceil(tinyBytes / 16));
  expect(await printOf(backend, held, 4)).toBe(before);
  expect(await shortReply(backend)).toEqual(right);
});

onGpu(
  "a held state is as its slot was at the call, whatever is submitted before it is given",
  async () => {
    await using backend = await open(new FaultyGpu(nodeGpuPlatform));
    backend.open(slotId(0));
    feed(backend, 0);
    const before = await printOf(backend, 0, 4);
    const pending = backend.hold(slotId(0));
    feed(backend, 4);
    backend.open(slotId(0));
    expect(await printOf(backend, await pending, 4)).toBe(before);
  },
);

onGpu("buffers of a held state that was disposed of are used again, and at once", async () => {
  const gpu = new FaultyGpu(nodeGpuPlatform);
  await using backend = await open(gpu);
  backend.open(slotId(0));
  feed(backend, 0);
  const first = await backend.hold(slotId(0));
  const second = await backend.hold(slotId(0));
  const before = await printOf(backend, first, 4);
  const { liveBuffers } = backend;
  const { buffers } = gpu;
  for (const held of [first, second]) held[Symbol.dispose]();
  expect(backend.liveBuffers).toBe(liveBuffers);
  // The next buffer is refused, and there is no next one before the fifth state.
  gpu.faults = { refuse: gpu.buffers + 1 };
  feed(backend, 4);
  const third = await backend.hold(slotId(0));
  const fourth = await backend.hold(slotId(0));
  first[Symbol.dispose]();
  expect([gpu.buffers, backend.liveBuffers]).toEqual([buffers, liveBuffers]);
  // What is disposed of twice is given once: the fifth would share the third's buffers otherwise.
  await expect(backend.hold(slotId(0))).rejects.toThrow(MemoryError);
  expect(() => backend.resume(slotId(0), first)).toThrow(InvariantError);
  const after = await printOf(backend, 0, 8);
  expect(await printOf(backend, third, 8)).toBe(after);
  // Disposed of, its buffers hold another's state before this is read; the copy was made at the call.
  const saving = printOf(backend, fourth, 8);
  fourth[Symbol.dispose]();
  backend.open(slotId(0));
  await backend.hold(slotId(0));
  expect(await saving).toBe(after);
  expect(after).not.toBe(before);
});

onGpu("held states go with their backend, and disposing of one never fails", async () => {
  const gpu = new FaultyGpu(nodeGpuPlatform);
  const backend = await open(gpu);
  backend.open(slotId(0));
  const kept = await backend.hold(slotId(0));
  (await backend.hold(slotId(0)))[Symbol.dispose]();
  const pending = backend.hold(slotId(0));
  const late = backend.hold(slotId(0));
  await backend[Symbol.asyncDispose]();
  expect([backend.liveBuffers, gpu.live.size]).toEqual([0, 0]);
  for (const held of [kept, await pending, await late]) held[Symbol.dispose]();
  expect([backend.liveBuffers, gpu.live.size]).toEqual([0, 0]);
});

onGpu("a lost device holds, resumes and copies nothing more", async () => {
  const gpu = new FaultyGpu(nodeGpuPlatform);
  const backend = await open(gpu);
  backend.open(slotId(0));
  const held = await backend.hold(slotId(0));
  const pending = backend.hold(slotId(0));
  gpu.devices[0]!.destroy();
  await expect(pending).rejects.toThrow(BackendLostError);
  await expect(backend.hold(slotId(0))).rejects.toThrow(BackendLostError);
  expect(() => backend.resume(slotId(0), held)).toThrow(BackendLostError);
  expect(() => backend.copyPage(pageId(0), pageId(0))).toThrow(BackendLostError);
  await expect(backend.save(held, [], 0)).rejects.toThrow(BackendLostError);
  held[Symbol.dispose]();
  await backend[Symbol.asyncDispose]();
  held[Symbol.dispose]();
  expect([backend.liveBuffers, gpu.live.size]).toEqual([0, 0]);
});

import { messageOf } from "../../errors.ts";
import { pageId, slotId, type TokenId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { stateFingerprint } from "../../state/fingerprint.ts";
import { randomWeights } from "../../weights/random.ts";
import type { Weights } from "../../weights/weights.ts";
import type { Backend } from "../backend.ts";
import { openDevice } from "./device.ts";
import { FaultyGpu } from "./faulty-gpu.cases.ts";
import "./polling.cases.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import type { Arithmetic } from "./projection-layout.ts";

export const tinyWeights: Weights = randomWeights(tinyShape(), {
  seed: 3,
  bits: 4,
  groupSize: 32,
});

/** One device for all backends of a test file, of which only the first compiles a kernel. */
export const sharedGpu: FaultyGpu = new FaultyGpu(nodeGpuPlatform, {}, true);

/** Why this machine can't run tests on a GPU; null where it can. */
export async function missingGpu(): Promise<string | null> {
  try {
    const { device, description } = await openDevice(nodeGpuPlatform, null);
    device.destroy();
    console.log(`webgpu tests run on ${description}`);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** The classes that the GPU has. */
export async function arithmeticsHere(): Promise<Arithmetic[]> {
  const { device, features } = await openDevice(nodeGpuPlatform, null);
  device.destroy();
  return features.has("shader-f16") ? ["f32", "f16"] : ["f32"];
}

/** A reply in slot 0: a prompt of 14 rows in two chunks, then four tokens by argmax, and the state. */
export async function shortReply(backend: Backend): Promise<(TokenId | string)[]> {
  const slot = slotId(0);
  const pages = [pageId(0)];
  backend.open(slot);
  const feed = async (ids: readonly TokenId[], start: number): Promise<TokenId> => {
    const part = { ids, start, stateSlot: slot, nextSlot: slot, pages, keepLogits: true } as const;
    const plan = planPass([{ ...part, draw: "last", candidates: 1 }]);
    const [best] = (await backend.read(backend.verify(plan))).draws;
    if (best === undefined || best instanceof Error) throw best;
    return best.ids[0]!;
  };
  const prompt = Array.from({ length: 14 }, (_, i) => (i * 53 + 11) % 300);
  await feed(prompt.slice(0, 8), 0);
  const ids = [await feed(prompt.slice(8), 8)];
  while (ids.length < 4) ids.push(await feed([ids.at(-1)!], 13 + ids.length));
  const sha = stateFingerprint(await backend.save(slot, pages, 17));
  backend.release(slot);
  return [...ids, sha];
}

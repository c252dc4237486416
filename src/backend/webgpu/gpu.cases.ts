import { pageId, slotId, type TokenId } from "../../ids.ts";
import { planPass } from "../../model/plan.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { stateFingerprint } from "../../state/fingerprint.ts";
import { randomWeights } from "../../weights/random.ts";
import type { Weights } from "../../weights/weights.ts";
import type { Backend } from "../backend.ts";
import { nodeGpuPlatform } from "./platform-node.ts";
import { WebgpuBackend } from "./webgpu.ts";

export const tinyWeights: Weights = randomWeights(tinyShape(), {
  seed: 3,
  bits: 4,
  groupSize: 32,
});

/** Why this machine can't run tests on a GPU; null where it can. */
export async function missingGpu(): Promise<string | null> {
  try {
    await using backend = await WebgpuBackend.open({
      weights: tinyWeights,
      slots: 1,
      pages: 1,
      rowsMax: 8,
      drawsMax: 1,
      taps: [],
      platform: nodeGpuPlatform,
      adapter: null,
      synthetic: false,
    });
    console.log(`webgpu tests run on ${backend.info.device}`);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
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

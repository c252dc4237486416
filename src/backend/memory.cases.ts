/** Models with all kinds of sizes, for tests that a plan's bytes are those that are taken. */
import { join } from "node:path";
import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { openFolder } from "../checkpoint/source-node.ts";
import { tinyDrafterShape } from "../model/drafter-shape.ts";
import { namedDrafter, namedShape } from "../model/released-shapes.ts";
import { tinyShape } from "../model/tiny-shape.ts";
import { weightsFromCheckpoint } from "../weights/from-checkpoint.ts";
import { randomWeights } from "../weights/random.ts";
import { randomDrafterWeights } from "../weights/random-drafter.ts";
import type { AffineBits } from "../weights/weights.ts";
import type { BackendOptions } from "./backend.ts";
import { drafterCases } from "./drafters.cases.ts";
import { modelCases } from "./models.cases.ts";

/** Every model and drafter of the other suites, each at other sizes. */
export function memoryCases(): BackendOptions[] {
  const models = modelCases.map(([changes, [bits, groupSize]]) => ({
    weights: randomWeights(tinyShape(changes), { seed: 11, bits, groupSize }),
  }));
  const drafted = drafterCases.map(({ target, drafter, format: [bits, groupSize], vocabulary }) => {
    const weights = randomWeights(tinyShape(target), { seed: 11, bits, groupSize });
    const shape = tinyDrafterShape(weights.shape, drafter);
    const draftWeights = randomDrafterWeights(shape, { seed: 12, bits, groupSize });
    return {
      weights,
      drafter: { weights: draftWeights, ...(vocabulary !== undefined && { vocabulary }) },
    };
  });
  return [...models, ...drafted].map((model, at) => ({ ...model, ...sizesOf(at) }));
}

function sizesOf(at: number) {
  const slots = 1 + (at % 5);
  return {
    slots,
    pages: [1, 3, 17, 70][at % 4]!,
    rowsMax: [8, 60, 256][at % 3]!,
    drawsMax: 1 + ((7 * at) % (8 * slots)),
    taps: [[], [0], [1, 3]][at % 3]!,
  };
}

/** The model that comes along, as it is opened for eight streams. */
export async function nanoCase(): Promise<BackendOptions> {
  const folder = await openFolder(join(import.meta.dirname, "../../models/nano"));
  const weights = await weightsFromCheckpoint(await openCheckpoint(folder));
  const drafter = randomDrafterWeights(tinyDrafterShape(weights.shape), { seed: 1, bits: 4 });
  const sizes = { slots: 8, pages: 520, rowsMax: 256, drawsMax: 128, taps: [] };
  return { weights, drafter: { weights: drafter }, ...sizes };
}

/** A released size, opened for one stream, with a drafter of a released one's proportions or without. */
export function releasedCase(name: string, bits: AffineBits, drafted = false): BackendOptions {
  const shape = namedShape(name)!;
  const weights = randomWeights(shape, { seed: 1, bits, groupSize: 64 });
  const drafter = randomDrafterWeights(namedDrafter(shape), { seed: 1, bits, groupSize: 64 });
  return {
    ...{ weights, slots: 1, pages: 512, rowsMax: 256, drawsMax: 16, taps: [] },
    drafter: drafted ? { weights: drafter } : null,
  };
}

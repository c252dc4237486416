import { expect } from "vitest";
import { pageId, slotId, type TokenId } from "../ids.ts";
import { type DrafterShape, tinyDrafterShape } from "../model/drafter-shape.ts";
import { planPass } from "../model/plan.ts";
import type { ModelShape } from "../model/shape.ts";
import { tinyShape } from "../model/tiny-shape.ts";
import { randomWeights } from "../weights/random.ts";
import { randomDrafterWeights } from "../weights/random-drafter.ts";
import type { Backend, BackendOptions } from "./backend.ts";
import type { Format } from "./models.cases.ts";
import { ReferenceBackend } from "./reference/reference.ts";

/** A drafter beside a model, of every format and of every size that a kernel may take otherwise. */
export interface DrafterCase {
  readonly target?: Partial<ModelShape>;
  readonly drafter?: Partial<DrafterShape>;
  readonly format: Format;
  /** How many tokens it may propose. */
  readonly vocabulary?: number;
}

const v1: Partial<DrafterShape> = { kind: "dflash", convolution: null, selector: null };
const full = { window: null, causal: false };

export const drafterCases: readonly DrafterCase[] = [
  { format: [4, 32] },
  { format: [8, 32] },
  { format: ["bf16", 32] },
  { format: ["f32", 32] },
  { drafter: v1, format: [4, 32] },
  { drafter: { ...v1, layers: [full], blockRows: 16 }, format: ["bf16", 32] },
  { drafter: { layers: [{ window: 1, causal: true }, full] }, format: [4, 32] },
  { drafter: { layers: [{ window: 70, causal: false }], blockRows: 2 }, format: [4, 32] },
  { drafter: { headCount: 8, kvHeadCount: 1, headDim: 64 }, format: [4, 32] },
  { drafter: { headCount: 4, kvHeadCount: 4, headDim: 128 }, format: [4, 64] },
  { drafter: { convolution: { groupSize: 4 }, selector: { rank: 64 } }, format: [4, 32] },
  { drafter: { convolution: { groupSize: 32 }, selector: { rank: 256 } }, format: [8, 32] },
  { drafter: { featureLayers: [3, 1, 0, 2], intermediateSize: 320 }, format: [4, 32] },
  { drafter: { featureLayers: [1] }, format: [4, 32] },
  {
    drafter: {
      rope: {
        theta: 1000,
        yarn: {
          factor: 4,
          originalContext: 64,
          betaFast: 32,
          betaSlow: 1,
          attentionFactor: 1.1386,
        },
      },
    },
    format: [4, 32],
  },
  { target: { tiedHead: true, vocabSize: 302 }, format: [4, 32], vocabulary: 201 },
  { target: { hiddenSize: 256 }, drafter: { intermediateSize: 384 }, format: [4, 64] },
];

/** A case as a title. */
export const drafterCaseName = ({ format, ...rest }: DrafterCase): string =>
  `${format.join(" g")} ${JSON.stringify(rest)}`;

/**
 * The largest difference of a backend's drafter from the reference's, over its context, a block's logits
 * and what its candidates are scored with, each relative to the largest value of its kind.
 */
export async function worstDraftDifference(
  { target = {}, drafter = {}, format: [bits, groupSize], vocabulary }: DrafterCase,
  open: (options: BackendOptions) => Promise<Backend>,
): Promise<number> {
  const shape = tinyShape(target);
  const random = { seed: 11, bits, groupSize };
  const drafterWeights = randomDrafterWeights(tinyDrafterShape(shape, drafter), random);
  const options: BackendOptions = {
    weights: randomWeights(shape, random),
    drafter: { weights: drafterWeights, ...(vocabulary && { vocabulary }) },
    slots: 1,
    pages: 2,
    rowsMax: 70,
    drawsMax: 16,
    taps: [],
  };
  await using reference = await ReferenceBackend.open(options);
  await using backend = await open(options);
  const expected = await draftOf(reference);
  const actual = await draftOf(backend);
  expect(actual.map(({ length }) => length)).toEqual(expected.map(({ length }) => length));
  return Math.max(...expected.map((values, kind) => relative(values, actual[kind]!)));
}

/** The context of 100 rows, then two blocks behind it, one of which is half as wide. */
async function draftOf(backend: Backend): Promise<Float32Array[]> {
  const { shape, drafter } = backend.info;
  const slot = { stateSlot: slotId(0), nextSlot: slotId(0), pages: [pageId(1), pageId(0)] };
  const plain = { ...slot, draw: "none", candidates: 0 } as const;
  backend.open(slotId(0));
  for (const [start, rows] of [[0, 70] as const, [70, 30] as const]) {
    const ids = Array.from(
      { length: rows },
      (_, row) => ((start + row) * 31 + 5) % shape.vocabSize,
    );
    await backend.read(backend.prefill(planPass([{ ...plain, ids, start }])));
    const nothing = new Array<TokenId>(rows).fill(0);
    backend.extend(planPass([{ ...plain, ids: nothing, start }]));
  }
  const { draftKeys, draftValues } = await backend.save(slotId(0), slot.pages, 100);
  const kinds: Float32Array[] = [draftKeys, draftValues];
  const { blockRows, maskId } = drafter!;
  for (const rows of [blockRows, Math.max(2, blockRows / 2)]) {
    const ids = [9, ...new Array<TokenId>(rows - 1).fill(maskId)];
    const block = planPass([{ ...plain, ids, start: 100, draw: "block" }]);
    const { draws, selector } = await backend.read(backend.draft(block));
    kinds.push(selector ?? new Float32Array(0));
    for (const draw of draws) {
      if (draw instanceof Error) throw draw;
      const row = new Float32Array(draw.ids.length);
      draw.ids.forEach((id, at) => {
        row[id] = draw.logits[at]!;
      });
      kinds.push(row);
    }
  }
  return kinds;
}

/** The largest difference over the largest of the expected values. */
function relative(expected: Float32Array, actual: Float32Array): number {
  const peak = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
  const worst = actual.reduce(
    (most, value, at) => Math.max(most, Math.abs(value - expected[at]!)),
    0,
  );
  return worst / peak;
}

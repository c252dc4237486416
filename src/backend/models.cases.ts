import { expect } from "vitest";
import { type PageId, pageId, slotId } from "../ids.ts";
import { planPass } from "../model/plan.ts";
import type { ModelShape } from "../model/shape.ts";
import type { AffineBits, AffineGroupSize, Weights } from "../weights/weights.ts";
import type { Backend, BackendOptions } from "./backend.ts";
import { ReferenceBackend } from "./reference/reference.ts";

/** Logits of every row of a 100-token prompt, fed as 70 and 30 rows. */
async function logitsOf(backend: Backend): Promise<number[]> {
  const pages: PageId[] = [pageId(1), pageId(0)];
  const { vocabSize } = backend.info.shape;
  const ids = Array.from({ length: 100 }, (_, i) => (i * 31 + 5) % vocabSize);
  backend.open(slotId(0));
  const logits: number[] = [];
  for (const [start, end] of [
    [0, 70],
    [70, 100],
  ] as const) {
    const plan = planPass([
      {
        ids: ids.slice(start, end),
        start,
        stateSlot: slotId(0),
        nextSlot: slotId(0),
        pages,
        draw: "all",
        candidates: 0,
      },
    ]);
    for (const draw of (await backend.read(backend.prefill(plan))).draws) {
      if (draw instanceof Error) throw draw;
      const row = new Float32Array(vocabSize);
      draw.ids.forEach((id, at) => {
        row[id] = draw.logits[at]!;
      });
      logits.push(...row);
    }
  }
  return logits;
}

export type Format = readonly [bits: AffineBits | "bf16" | "f32", groupSize: AffineGroupSize];

/** A model of every format, and of every size at which a kernel's loop changes its course. */
export const modelCases: readonly (readonly [Partial<ModelShape>, Format])[] = [
  [{}, [2, 32]],
  [{}, [3, 32]],
  [{}, [4, 32]],
  [{ hiddenSize: 128, intermediateSize: 192 }, [4, 64]],
  [{ hiddenSize: 128, intermediateSize: 256 }, [4, 128]],
  [{}, [5, 32]],
  [{ hiddenSize: 128, intermediateSize: 192 }, [6, 64]],
  [{ hiddenSize: 256, intermediateSize: 384 }, [8, 128]],
  [{}, [8, 32]],
  [{}, ["bf16", 32]],
  [{ hiddenSize: 72, intermediateSize: 136 }, ["bf16", 32]],
  [{}, ["f32", 32]],
  [{ tiedHead: true }, [4, 32]],
  [{ tiedHead: true, vocabSize: 301 }, ["bf16", 32]],
  [{ vocabSize: 302 }, [8, 32]],
  [{ vocabSize: 303, linearKeyHeads: 1, linearValueHeads: 3 }, [4, 32]],
  [{ linearValueHeads: 2 }, [4, 32]],
  [{ linearKeyHeads: 4, linearValueHeads: 8, linearKeyDim: 16, linearValueDim: 48 }, [4, 32]],
  [{ headCount: 6, kvHeadCount: 1, headDim: 64, rotaryDim: 64 }, [4, 32]],
  [{ headCount: 2, kvHeadCount: 2, headDim: 128, rotaryDim: 32 }, [4, 32]],
  [{ headDim: 256, rotaryDim: 64 }, [4, 32]],
  [{ convTaps: 2 }, [4, 32]],
  [{ convTaps: 7 }, [4, 32]],
  [{ layerTypes: ["full", "full"] }, [4, 32]],
  [{ layerTypes: ["linear"] }, [4, 32]],
  // Inputs of so many columns are summed in slices: webgpu's f32 kernel, then its f16 one.
  [{ intermediateSize: 4096, layerTypes: ["linear"] }, [4, 64]],
  [{ hiddenSize: 1024, intermediateSize: 1088, layerTypes: ["linear", "full"] }, [4, 64]],
];

/**
 * The largest difference of a backend's logits from the reference's, relative to the largest logit, over
 * every row of a 100-token prompt.
 */
export async function worstDifference(
  weights: Weights,
  open: (options: BackendOptions) => Promise<Backend>,
): Promise<number> {
  const sizes = { weights, slots: 1, pages: 2, rowsMax: 70, drawsMax: 70, taps: [] };
  await using reference = await ReferenceBackend.open(sizes);
  await using backend = await open(sizes);
  const expected = await logitsOf(reference);
  const actual = await logitsOf(backend);
  expect(actual).toHaveLength(expected.length);
  const peak = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const worst = actual.reduce(
    (most, value, at) => Math.max(most, Math.abs(value - expected[at]!)),
    0,
  );
  return worst / peak;
}

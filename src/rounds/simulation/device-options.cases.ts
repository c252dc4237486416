import type { FakeOptions } from "../../backend/fake/fake.ts";
import { windowRowsMax } from "../../limits.ts";
import { tinyDrafterShape } from "../../model/drafter-shape.ts";
import type { ModelShape } from "../../model/shape.ts";
import { tinyShape } from "../../model/tiny-shape.ts";

/** Few tokens, so that texts have some in common; a state of just the four bytes that the fake's has. */
export const shape: ModelShape = tinyShape({
  vocabSize: 61,
  layerTypes: ["linear", "full"],
  linearKeyHeads: 1,
  linearValueHeads: 1,
  linearKeyDim: 1,
  linearValueDim: 1,
  convTaps: 1,
});

/** Bytes of a page of the fake's. */
export const pageBytes = 256;
export const rowsMax = 128;
const drafter = { weights: { shape: tinyDrafterShape(shape) } };

/** What a device is, and what goes wrong with it. */
export interface DeviceOptions {
  readonly slots: number;
  readonly pages: number;
  readonly drafts: boolean;
  /** One row in so many is not finite, by what it follows from; 0: none. */
  readonly brokenOnceIn: number;
  /** ms of a pass: for itself, and for each row. */
  readonly passMs: number;
  readonly rowMs: number;
  /** Passes that are done in part, counted from 1. */
  readonly failingPasses: ReadonlySet<number>;
  /** Holds for which there is no memory, counted from 1. */
  readonly refusedHolds: ReadonlySet<number>;
  /** Copies out that fail, counted from 1. */
  readonly failingSaves: ReadonlySet<number>;
  /** The call of any verb in which it is lost; 0: never. */
  readonly lostIn: number;
  /** Whether that call does its work first. */
  readonly lostAfter: boolean;
}

/** Options of a fake of these sizes. */
export function fakeOptions({
  slots,
  pages,
  drafts,
  brokenOnceIn,
}: Pick<DeviceOptions, "slots" | "pages" | "drafts" | "brokenOnceIn">): FakeOptions {
  const logits = (row: Float32Array, history: number) => {
    if (brokenOnceIn > 0 && history % brokenOnceIn === 0) row[0] = Number.NaN;
  };
  const drawsMax = slots * windowRowsMax;
  return { shape, slots, pages, rowsMax, drawsMax, logits, drafter: drafts ? drafter : null };
}

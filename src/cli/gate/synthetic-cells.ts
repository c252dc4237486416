import type { Backend } from "../../backend/backend.ts";
import { firstRows } from "../../backend/windows.ts";
import { slotId } from "../../ids.ts";
import { windowRowsMax } from "../../limits.ts";
import { planPass } from "../../model/plan.ts";
import { poisoned } from "./rows.ts";
import { emptyTimeline, type Truth } from "./synthetic-truth.ts";
import type { Random, Timeline } from "./timeline.ts";

/** Each runs the truth's prompt in its own way and returns what it did; it throws where a byte differs. */
export type Cell = (backend: Backend, truth: Truth, random: Random) => Promise<string>;

const sixteen = Array.from({ length: windowRowsMax }, (_, index) => index + 1);
/** Rows of the chunks that every gate run compares with one row at a time. */
export const chunkRows: readonly number[] = [...sixteen, 32, 64, 128];

/** Chunks of each width; `everywhere` compares at the end of each chunk and not of the last alone. */
export const chunks =
  (widths: readonly number[], everywhere: boolean): Cell =>
  async (backend, truth) => {
    for (const rows of widths) {
      const timeline = emptyTimeline(backend, 0);
      while (!truth.isOver(timeline)) {
        await timeline.feed(truth.next(timeline, rows));
        if (everywhere || truth.isOver(timeline)) {
          await truth.compare(timeline, true, `chunks of ${rows}`);
        }
      }
      await truth.finish(timeline, `chunks of ${rows}`);
    }
    return `chunks of ${widths.join(", ")}`;
  };

/** Windows of 1 to 16 rows, of which only those that are kept are the prompt's; chains in between. */
export const keeps: Cell = async (backend, truth, random) => {
  const timeline = emptyTimeline(backend, 0);
  let windows = 0;
  while (!truth.isOver(timeline)) {
    if (random(4) === 0) {
      await timeline.feed(truth.next(timeline, 1 + random(3)));
      await truth.compare(timeline, true, "a chain between windows");
      continue;
    }
    const right = truth.next(timeline, 1 + random(windowRowsMax));
    const kept = random(right.length + 1);
    await verifyWindow(backend, truth, timeline, right, kept);
    await truth.compare(timeline, false, `${kept} of ${right.length} rows`);
    windows++;
  }
  await truth.finish(timeline, "after windows");
  return `${windows} windows`;
};

/** Feeds a window whose rows from `kept` on are wrong, and keeps the others. */
async function verifyWindow(
  backend: Backend,
  truth: Truth,
  timeline: Timeline,
  right: readonly number[],
  kept: number,
): Promise<void> {
  const { vocabSize } = backend.info.shape;
  const ids = right.map((id, row) => (row < kept ? id : (id + 1) % vocabSize));
  const whole = { draw: "all", keepLogits: false, window: true } as const;
  const handle = backend.verify(planPass([{ ...timeline.segment(ids, 0), ...whole }]));
  truth.compareLogits(await backend.read(handle), 0, timeline.rows, kept);
  backend.keep(handle, [firstRows(kept)]);
  timeline.advance(kept);
}

/** Chunks of random widths, each to another of three slots. */
export const moved: Cell = async (backend, truth, random) => {
  const timeline = emptyTimeline(backend, 0);
  backend.open(slotId(1));
  backend.open(slotId(2));
  let moves = 0;
  while (!truth.isOver(timeline)) {
    const to = slotId((timeline.slot + 1 + random(2)) % 3);
    await timeline.feed(truth.next(timeline, 1 + random(24)), 1, to);
    await truth.compare(timeline, true, "a moved state");
    moves++;
  }
  const last = timeline.slot;
  await truth.finish(timeline, "after moves");
  for (const slot of [0, 1, 2]) if (slot !== last) backend.release(slotId(slot));
  return `${moves} moves`;
};

/** A slot and pages that held NaN and were taken anew, beside a stream that is NaN throughout. */
export const poison: Cell = async (backend, truth, random) => {
  const spoiler = emptyTimeline(backend, 1);
  await spoiler.feed(truth.ids);
  const nan = poisoned(await spoiler.save());
  const before = emptyTimeline(backend, 0);
  before.restore(nan);
  before.close();
  const timeline = emptyTimeline(backend, 0);
  while (!truth.isOver(timeline)) {
    spoiler.restore(nan);
    const ids = truth.next(timeline, 1 + random(windowRowsMax));
    const window = random(2) === 0;
    const segments = [
      { ...spoiler.segment(ids, 1), keepLogits: false },
      { ...timeline.segment(ids, 1), keepLogits: !window, window },
    ];
    if (random(2) === 0) segments.reverse();
    const handle = backend.verify(planPass(segments));
    await backend.read(handle);
    const kept = window ? 1 + random(ids.length) : ids.length;
    if (window) backend.keep(handle, [firstRows(kept)]);
    timeline.advance(kept);
    await truth.compare(timeline, !window, "beside NaN");
  }
  spoiler.close();
  await truth.finish(timeline, "after NaN");
  return "a slot, its pages and a neighbour";
};

/** Saved at random positions, and restored into another slot with other pages. */
export const snapshots: Cell = async (backend, truth, random) => {
  let timeline = emptyTimeline(backend, 0);
  let moves = 0;
  while (!truth.isOver(timeline)) {
    await timeline.feed(truth.next(timeline, 1 + random(40)));
    const snapshot = await timeline.save();
    const other = emptyTimeline(backend, (timeline.slot + 1) % 3);
    other.restore(snapshot);
    timeline.close();
    timeline = other;
    await truth.compare(timeline, true, "a restored state");
    moves++;
  }
  await truth.finish(timeline, "after snapshots");
  return `${moves} snapshots`;
};

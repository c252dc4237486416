import type { Plan } from "../../model/plan.ts";
import { writeRope } from "../../model/rope.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { BackendOptions } from "../backend.ts";
import type { KeptWindow } from "../windows.ts";
import type { AttentionCut } from "./attention-cut.ts";
import { topOf, topOfPlan } from "./topk.ts";

const headerWords = 16;
const segmentWords = 8;

/** Words of the largest pass. */
export function passWords(options: BackendOptions): number {
  const { rowsMax, drawsMax, slots, pages } = options;
  const { rotaryDim } = options.weights.shape;
  const rowWords = 5 + rotaryDim;
  return headerWords + rowsMax * rowWords + 2 * drawsMax + slots * (segmentWords + pages);
}

/** Words of a pass that commits a window of every slot. */
export const keepWords = ({ slots }: BackendOptions): number => headerWords + slots * segmentWords;

/** Of each slot's two conv histories, which one is read next: 0 or 1. */
export type HistoryTurns = Uint8Array;

/** Indices of the histories that a segment reads and writes. */
const historiesOf = (turns: HistoryTurns, stateSlot: number, nextSlot: number) => [
  2 * stateSlot + turns[stateSlot]!,
  2 * nextSlot + 1 - turns[nextSlot]!,
];

/** A pass without rows, whose segments are the windows to commit and their kept rows. */
export function encodeKeeps(
  windows: readonly KeptWindow[],
  turns: HistoryTurns,
): Uint32Array<ArrayBuffer> {
  const words = new Uint32Array(headerWords + windows.length * segmentWords);
  words[7] = headerWords;
  windows.forEach(({ slot, rows }, index) => {
    const record = [0, rows, slot, slot, 0, ...historiesOf(turns, slot, slot)];
    words.set(record, headerWords + index * segmentWords);
  });
  return words;
}

/** A validated plan as `kernels/pass.wgsl` reads it. */
export function encodePass(
  plan: Plan,
  shape: ModelShape,
  turns: HistoryTurns,
  attention: AttentionCut,
): Uint32Array<ArrayBuffer> {
  const rows = plan.ids.length;
  const tableWords = plan.segments.reduce((sum, segment) => sum + segment.pages.length, 0);
  const positionsAt = headerWords + rows;
  const rowSegmentsAt = positionsAt + rows;
  const drawsAt = rowSegmentsAt + rows;
  const segmentsAt = drawsAt + 2 * plan.draws.length;
  const ropeAt = segmentsAt + plan.segments.length * segmentWords;
  const tablesAt = ropeAt + rows * shape.rotaryDim;
  const blocksAt = tablesAt + tableWords;
  const words = new Uint32Array(blocksAt + 2 * attention.blocks.length);
  const counts = [rows, plan.draws.length, plan.segments.length];
  words.set([...counts, headerWords, positionsAt, rowSegmentsAt, drawsAt, segmentsAt, ropeAt]);
  words.set([blocksAt, attention.span, attention.partials, topOfPlan(plan)], 9);
  attention.blocks.forEach((block, index) => {
    words.set([block.firstRow, block.rows], blocksAt + 2 * index);
  });
  words.set(plan.ids, headerWords);
  plan.draws.forEach((draw, index) => {
    words[drawsAt + index] = draw.row;
    words[drawsAt + plan.draws.length + index] = topOf(draw.candidates);
  });
  let tableAt = tablesAt;
  plan.segments.forEach((segment, index) => {
    const { firstRow, stateSlot, nextSlot, pages } = segment;
    words.set(
      [
        firstRow,
        segment.rows,
        stateSlot,
        nextSlot,
        tableAt,
        ...historiesOf(turns, stateSlot, nextSlot),
        segment.window ? 1 : 0,
      ],
      segmentsAt + index * segmentWords,
    );
    words.set(pages, tableAt);
    tableAt += pages.length;
    for (let local = 0; local < segment.rows; local++) {
      words[positionsAt + firstRow + local] = segment.start + local;
      words[rowSegmentsAt + firstRow + local] = index;
    }
  });
  const table = new Float32Array(words.buffer, 4 * ropeAt, rows * shape.rotaryDim);
  writeRope(table, words.subarray(positionsAt, positionsAt + rows), shape);
  return words;
}

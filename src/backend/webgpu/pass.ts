import type { Plan } from "../../model/plan.ts";
import { writeRope } from "../../model/rope.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { BackendOptions } from "../backend.ts";

const headerWords = 16;
const segmentWords = 8;

/** Words of the largest pass. */
export function passWords(options: BackendOptions): number {
  const { rowsMax, drawsMax, slots, pages } = options;
  const { rotaryDim } = options.weights.shape;
  return headerWords + rowsMax * (3 + rotaryDim) + drawsMax + slots * segmentWords + slots * pages;
}

/** A validated plan as `kernels/pass.wgsl` reads it. */
export function encodePass(plan: Plan, shape: ModelShape): Uint32Array<ArrayBuffer> {
  const rows = plan.ids.length;
  const tableWords = plan.segments.reduce((sum, segment) => sum + segment.pages.length, 0);
  const positionsAt = headerWords + rows;
  const rowSegmentsAt = positionsAt + rows;
  const drawsAt = rowSegmentsAt + rows;
  const segmentsAt = drawsAt + plan.draws.length;
  const ropeAt = segmentsAt + plan.segments.length * segmentWords;
  const tablesAt = ropeAt + rows * shape.rotaryDim;
  const words = new Uint32Array(tablesAt + tableWords);
  const counts = [rows, plan.draws.length, plan.segments.length];
  words.set([...counts, headerWords, positionsAt, rowSegmentsAt, drawsAt, segmentsAt, ropeAt]);
  words.set(plan.ids, headerWords);
  plan.draws.forEach((draw, index) => {
    words[drawsAt + index] = draw.row;
  });
  let tableAt = tablesAt;
  plan.segments.forEach((segment, index) => {
    const { firstRow, stateSlot, nextSlot, pages } = segment;
    words.set(
      [firstRow, segment.rows, stateSlot, nextSlot, tableAt],
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

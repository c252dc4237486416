import { pageRows } from "../../limits.ts";
import { depthsOf, isTree, type Plan, pathOf, type Segment } from "../../model/plan.ts";
import { type Rotation, writeRope } from "../../model/rope.ts";
import type { BackendOptions } from "../backend.ts";
import type { KeptWindow } from "../windows.ts";
import type { AttentionCut } from "./attention-cut.ts";
import { topOf, topOfPlan } from "./topk.ts";
import { packPath, pathWords, scansOf } from "./trees.ts";

const headerWords = 16;
const segmentWords = 8;
const scanWords = 4;

/** Words of the largest pass whose rows are rotated by `rotaryDim` numbers. */
export function passWords(options: BackendOptions, rotaryDim: number): number {
  const { rowsMax, drawsMax, slots, pages } = options;
  const rowWords = 6 + pathWords + scanWords + rotaryDim;
  return headerWords + rowsMax * rowWords + 2 * drawsMax + slots * (segmentWords + pages);
}

/** Words of a pass that commits a window of every slot; its places lie in two pages at most. */
export const keepWords = ({ slots }: BackendOptions): number =>
  headerWords + slots * (segmentWords + pathWords + 2);

/** Of each slot's two conv histories, which one is read next: 0 or 1. */
export type HistoryTurns = Uint8Array;

/** Indices of the histories that a segment reads and writes. */
const historiesOf = (turns: HistoryTurns, stateSlot: number, nextSlot: number) => [
  2 * stateSlot + turns[stateSlot]!,
  2 * nextSlot + 1 - turns[nextSlot]!,
];

/** A pass without rows, whose segments are the windows to commit: their places and kept paths. */
export function encodeKeeps(
  windows: readonly KeptWindow[],
  turns: HistoryTurns,
): Uint32Array<ArrayBuffer> {
  const pathsAt = headerWords + windows.length * segmentWords;
  const tablesAt = pathsAt + windows.length * pathWords;
  const words = new Uint32Array(tablesAt + 2 * windows.length);
  words[7] = headerWords;
  words[14] = pathsAt;
  windows.forEach(({ slot, segment: { start, pages }, path }, index) => {
    const firstPage = Math.floor(start / pageRows);
    const tableAt = tablesAt + 2 * index;
    // The table begins with the first page that is wanted; kernels' words wrap around.
    const table = (tableAt - firstPage) >>> 0;
    const record = [start, path.length, slot, slot, table, ...historiesOf(turns, slot, slot)];
    words.set(record, headerWords + index * segmentWords);
    words.set(packPath(path), pathsAt + index * pathWords);
    words.set(pages.slice(firstPage), tableAt);
  });
  return words;
}

/** A validated plan as `kernels/pass.wgsl` reads it. */
export function encodePass(
  plan: Plan,
  rotation: Rotation,
  turns: HistoryTurns,
  attention: AttentionCut,
): Uint32Array<ArrayBuffer> {
  const { ids, draws, segments } = plan;
  const scans = scansOf(plan);
  const trees = scans.length > 0;
  const rotaryDim = 2 * rotation.frequencies.length;
  let end = headerWords;
  const room = (count: number) => {
    const at = end;
    end += count;
    return at;
  };
  const idsAt = room(ids.length);
  const positionsAt = room(ids.length);
  const rowSegmentsAt = room(ids.length);
  const drawsAt = room(2 * draws.length);
  const segmentsAt = room(segments.length * segmentWords);
  const ropeAt = room(ids.length * rotaryDim);
  const tablesAt = room(segments.reduce((sum, { pages }) => sum + pages.length, 0));
  const blocksAt = room(2 * attention.blocks.length);
  // In chains, a row lies at its position.
  const placesAt = trees ? room(ids.length) : positionsAt;
  const pathsAt = room(trees ? ids.length * pathWords : 0);
  const scansAt = room(scans.length * scanWords);
  const words = new Uint32Array(end);
  words.set([ids.length, draws.length, segments.length, idsAt, positionsAt, rowSegmentsAt]);
  words.set([drawsAt, segmentsAt, ropeAt, blocksAt, attention.span, attention.partials], 6);
  words.set([topOfPlan(plan), placesAt, pathsAt, scansAt], 12);
  attention.blocks.forEach((block, index) => {
    words.set([block.firstRow, block.rows], blocksAt + 2 * index);
  });
  words.set(ids, idsAt);
  draws.forEach((draw, index) => {
    words[drawsAt + index] = draw.row;
    words[drawsAt + draws.length + index] = topOf(draw.candidates);
  });
  let tableAt = tablesAt;
  segments.forEach((segment, index) => {
    const { firstRow, stateSlot, nextSlot, pages } = segment;
    const histories = historiesOf(turns, stateSlot, nextSlot);
    const record = [firstRow, segment.rows, stateSlot, nextSlot, tableAt, ...histories];
    words.set([...record, kindOf(segment)], segmentsAt + index * segmentWords);
    words.set(pages, tableAt);
    tableAt += pages.length;
    depthsOf(segment).forEach((depth, local) => {
      const row = firstRow + local;
      words[positionsAt + row] = segment.start + depth;
      words[rowSegmentsAt + row] = index;
      if (!trees) return;
      words[placesAt + row] = segment.start + local;
      if (isTree(segment)) words.set(packPath(pathOf(segment, local)), pathsAt + row * pathWords);
    });
  });
  scans.forEach(({ segment, rows, known, leaf }, index) => {
    const path = leaf === null ? 0 : segments[segment]!.firstRow + leaf;
    words.set([segment, rows, known, path], scansAt + index * scanWords);
  });
  const table = new Float32Array(words.buffer, 4 * ropeAt, ids.length * rotaryDim);
  writeRope(table, words.subarray(positionsAt, positionsAt + ids.length), rotation);
  return words;
}

/** A chain, a window, or a window that is a tree. */
const kindOf = (segment: Segment): 0 | 1 | 2 => {
  if (!segment.window) return 0;
  return isTree(segment) ? 2 : 1;
};

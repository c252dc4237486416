import { invariant } from "../errors.ts";
import type { PageId, Position, SlotId, TokenId } from "../ids.ts";
import { pageRows, windowRowsMax } from "../limits.ts";

/** Consecutive rows of one stream in a pass. */
export interface Segment {
  readonly firstRow: number;
  readonly rows: number;
  /** Absolute position of the first row. */
  readonly start: Position;
  /** The slot whose state the rows continue. */
  readonly stateSlot: SlotId;
  /** The slot that receives the state after the last row. Equal slots: the scan runs in place. */
  readonly nextSlot: SlotId;
  /** KV pages of places [0, start + rows), 64 a page: row i of the segment lies at place start + i. */
  readonly pages: readonly PageId[];
  /**
   * False: a chain, whose every row is committed. True: the rows are scanned without storing state or
   * conv history, and `Backend.keep` commits a path of them. KV rows are written either way; those
   * that are not kept are overwritten by the rows that take their places.
   */
  readonly window: boolean;
  /**
   * Of a window that is a tree: each row's parent among the segment's rows, −1 for the first, which is
   * the root. Parents come before their children. Null: each row's parent is the row before it. A row
   * sees what came before the window and its own ancestors; its position is `start` plus its depth.
   */
  readonly parents: readonly number[] | null;
}

/** A row whose logits are wanted, as its `candidates` best (1: greedy; 0: the whole row). */
export interface Draw {
  readonly row: number;
  readonly candidates: number;
  /** The segment's slot keeps the row's logits, for `save`; a window's, those of its last kept row. */
  readonly keepLogits: boolean;
}

/** The validated description of one pass. Chains and windows may share it. */
export interface Plan {
  /** [rows]. */
  readonly ids: readonly TokenId[];
  readonly segments: readonly Segment[];
  readonly draws: readonly Draw[];
}

/** What a plan is checked against. */
export interface PlanLimits {
  readonly rowsMax: number;
  readonly drawsMax: number;
  readonly slots: number;
  readonly pages: number;
  readonly vocabSize: number;
}

/** One stream's part of a pass. */
export interface SegmentRequest {
  readonly ids: readonly TokenId[];
  readonly start: Position;
  readonly stateSlot: SlotId;
  readonly nextSlot: SlotId;
  readonly pages: readonly PageId[];
  /** Which rows draw, and how many candidates each; of a block all but the first. */
  readonly draw: "none" | "last" | "all" | "block";
  readonly candidates: number;
  readonly keepLogits?: boolean;
  readonly window?: boolean;
  readonly parents?: readonly number[] | null;
}

/** A row's ancestors and itself among its segment's rows, the root first. */
export function pathOf({ parents }: Pick<Segment, "parents">, local: number): number[] {
  if (!parents) return Array.from({ length: local + 1 }, (_, row) => row);
  const path: number[] = [];
  for (let row = local; row >= 0; row = parents[row]!) path.unshift(row);
  return path;
}

/** Whether parents make a tree; those that say a chain make none. */
export const isTree = ({ parents }: Pick<Segment, "parents">): boolean =>
  parents?.some((parent, row) => parent !== row - 1) ?? false;

/** How many ancestors each row of a segment has within it. */
export function depthsOf({ parents, rows }: Pick<Segment, "parents" | "rows">): number[] {
  const depths: number[] = [];
  for (let row = 0; row < rows; row++) {
    depths.push(parents && row > 0 ? depths[parents[row]!]! + 1 : row);
  }
  return depths;
}

/** The segment that holds a row of the pass. */
export function segmentOf(plan: Plan, row: number): Segment {
  return plan.segments.find((part) => row < part.firstRow + part.rows)!;
}

/** The position that a row's drawn token will have: one past the row's own. */
export function drawPosition(plan: Plan, row: number): Position {
  const segment = segmentOf(plan, row);
  return segment.start + depthsOf(segment)[row - segment.firstRow]! + 1;
}

/** Lays the requests' rows side by side, in order. */
export function planPass(requests: readonly SegmentRequest[]): Plan {
  const ids: TokenId[] = [];
  const segments: Segment[] = [];
  const draws: Draw[] = [];
  for (const request of requests) {
    const firstRow = ids.length;
    const rows = request.ids.length;
    const { start, stateSlot, nextSlot, window = false, parents = null } = request;
    const pages = request.pages.slice(0, Math.ceil((start + rows) / pageRows));
    segments.push({ firstRow, rows, start, stateSlot, nextSlot, pages, window, parents });
    const firstDraw = { none: rows, last: rows - 1, all: 0, block: 1 }[request.draw];
    for (let row = firstDraw; row < rows; row++) {
      const keepLogits = (request.keepLogits ?? false) && (window || row === rows - 1);
      draws.push({ row: firstRow + row, candidates: request.candidates, keepLogits });
    }
    ids.push(...request.ids);
  }
  return { ids, segments, draws };
}

/**
 * Derives everything in the plan again and throws InvariantError on any difference. A plan that
 * passes writes no state, history or page that another segment of the pass reads or writes: only
 * then may the scan run in place, because a segment that read a slot after another had advanced it
 * would depend on the order of execution.
 */
export function validatePlan(plan: Plan, limits: PlanLimits): void {
  const rows = plan.ids.length;
  invariant(rows > 0 && rows <= limits.rowsMax, `a pass of ${rows} rows (1 to ${limits.rowsMax})`);
  for (const id of plan.ids) {
    const inside = Number.isInteger(id) && id >= 0 && id < limits.vocabSize;
    invariant(inside, `token id ${id} outside the vocabulary of ${limits.vocabSize}`);
  }
  let nextRow = 0;
  for (const segment of plan.segments) {
    invariant(segment.firstRow === nextRow, `segments leave a gap before row ${segment.firstRow}`);
    invariant(segment.rows > 0, "a segment without rows");
    nextRow += segment.rows;
    validateSegment(segment, limits);
  }
  invariant(nextRow === rows, `segments cover ${nextRow} of ${rows} rows`);
  validateSlots(plan.segments);
  validatePages(plan.segments);
  validateDraws(plan, limits);
}

function validateSegment(segment: Segment, limits: PlanLimits): void {
  invariant(Number.isInteger(segment.start) && segment.start >= 0, "a segment's start");
  for (const slot of [segment.stateSlot, segment.nextSlot]) {
    invariant(slot >= 0 && slot < limits.slots, `slot ${slot} of ${limits.slots}`);
  }
  if (segment.window) {
    const { rows, stateSlot, nextSlot } = segment;
    invariant(rows <= windowRowsMax, `a window of ${rows} rows (at most ${windowRowsMax})`);
    invariant(stateSlot === nextSlot, `a window that moves slot ${stateSlot} to ${nextSlot}`);
  }
  validateParents(segment);
  const pages = Math.ceil((segment.start + segment.rows) / pageRows);
  invariant(segment.pages.length === pages, `${segment.pages.length} pages where ${pages} hold`);
  invariant(new Set(segment.pages).size === pages, "a segment that names a page twice");
  for (const page of segment.pages) {
    invariant(page >= 0 && page < limits.pages, `page ${page} of ${limits.pages}`);
  }
}

function validateParents({ window, rows, parents }: Segment): void {
  if (!parents) return;
  invariant(window, "a chain with parents of its own");
  invariant(parents.length === rows, `${parents.length} parents of ${rows} rows`);
  parents.forEach((parent, row) => {
    const inside = Number.isInteger(parent) && parent >= (row === 0 ? -1 : 0) && parent < row;
    invariant(inside, `row ${row} of a window with parent ${parent}`);
  });
}

/** The alias check of the states: a written slot is used by its own segment alone. */
function validateSlots(segments: readonly Segment[]): void {
  segments.forEach((writer, w) => {
    segments.forEach((other, o) => {
      if (w === o) return;
      invariant(other.nextSlot !== writer.nextSlot, `slot ${writer.nextSlot} is written twice`);
      const read = other.stateSlot === writer.nextSlot;
      invariant(!read, `slot ${writer.nextSlot} is written and read by another segment`);
    });
  });
}

/** The alias check of the KV: a page that a segment writes is in no other segment's table. */
function validatePages(segments: readonly Segment[]): void {
  segments.forEach((writer, w) => {
    const written = new Set(writer.pages.slice(Math.floor(writer.start / pageRows)));
    segments.forEach((other, o) => {
      if (w === o) return;
      const shared = other.pages.find((page) => written.has(page));
      invariant(shared === undefined, `page ${shared} is written while another segment uses it`);
    });
  });
}

function validateDraws(plan: Plan, limits: PlanLimits): void {
  invariant(plan.draws.length <= limits.drawsMax, `${plan.draws.length} draws in a pass`);
  let last = -1;
  for (const draw of plan.draws) {
    invariant(draw.row > last && draw.row < plan.ids.length, `draw of row ${draw.row}`);
    const whole = Number.isInteger(draw.candidates) && draw.candidates >= 0;
    invariant(whole, `${draw.candidates} candidates`);
    last = draw.row;
  }
}

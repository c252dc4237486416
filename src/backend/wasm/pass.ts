import { depthsOf, isTree, type Plan, pathOf, type Segment } from "../../model/plan.ts";
import { type Rotation, writeRope } from "../../model/rope.ts";
import { isPrefix, type KeptWindow } from "../windows.ts";
import type { Arena } from "./arena.ts";
import {
  PASS_BLOCK,
  PASS_BYTES,
  PASS_CONTEXT,
  PASS_DRAW_ROWS,
  PASS_DRAWS,
  PASS_IDS,
  PASS_KEEP,
  PASS_KINDS_BYTES,
  PASS_MOVES,
  PASS_POSITIONS,
  PASS_ROPE,
  PASS_ROW_SEGMENTS,
  PASS_ROWS,
  PASS_SEGMENT_TABLE,
  PASS_SEGMENTS,
  PASS_TARGET,
  SEGMENT_BYTES,
  SEGMENT_FIRST_ROW,
  SEGMENT_NEXT_SLOT,
  SEGMENT_PAGES,
  SEGMENT_PATHS,
  SEGMENT_ROWS,
  SEGMENT_START,
  SEGMENT_STATE_SLOT,
  SEGMENT_WINDOW,
  WINDOW_ROWS,
} from "./layout.ts";
import type { PassKind, PassPlaces } from "./places.ts";

/** Where the block of each kind lies behind the first. */
const blockOf: Readonly<Record<PassKind, number>> = {
  keep: PASS_KEEP,
  context: PASS_CONTEXT,
  block: PASS_BLOCK,
  target: PASS_TARGET,
};

/** Writes passes where the kernels read them. */
export class PassWriter {
  readonly #arena: Arena;
  readonly #places: PassPlaces;
  /** Where the next page table of the block that is being written lies, and the next paths. */
  #pageTable = 0;
  #paths = 0;

  constructor(arena: Arena, places: PassPlaces) {
    this.#arena = arena;
    this.#places = places;
  }

  /** Begins a pass that has nothing yet. */
  begin(): void {
    this.#arena.u32(this.#places.blocks, PASS_KINDS_BYTES / 4).fill(0);
  }

  /** Adds a validated plan. */
  plan(plan: Plan, kind: Exclude<PassKind, "keep">, rotation: Rotation): void {
    const places = this.#places.arrays[kind];
    const count = plan.ids.length;
    const block = this.#block(kind, plan.segments.length);
    block[PASS_ROWS / 4] = count;
    block[PASS_DRAWS / 4] = plan.draws.length;
    this.#arena.i32(places.ids, count).set(plan.ids);
    const drawRows = this.#arena.i32(places.drawRows, plan.draws.length);
    drawRows.set(plan.draws.map((draw) => draw.row));
    const positions = this.#arena.i32(places.positions, count);
    const rowSegments = this.#arena.i32(places.rowSegments, count);
    plan.segments.forEach((segment, index) => {
      const { firstRow } = segment;
      this.#segment(places.segments, index, segment, this.#treePaths(segment));
      rowSegments.fill(index, firstRow, firstRow + segment.rows);
      depthsOf(segment).forEach((depth, local) => {
        positions[firstRow + local] = segment.start + depth;
      });
    });
    const table = this.#arena.f32(places.rope, count * 2 * rotation.frequencies.length);
    writeRope(table, positions, rotation);
  }

  /** Adds windows to commit. */
  keep(windows: readonly KeptWindow[]): void {
    const block = this.#block("keep", windows.length);
    block[PASS_ROWS / 4] = windows.length;
    const moving = windows.some(({ path }) => !isPrefix(path));
    block[PASS_MOVES / 4] = moving ? windows.length : 0;
    windows.forEach(({ segment, path }, index) => {
      const paths = isPrefix(path) ? 0 : this.#path(path);
      const kept = { ...segment, firstRow: 0, rows: path.length };
      this.#segment(this.#places.arrays.keep.segments, index, kept, paths);
    });
  }

  /** A kind's block with its segments and pointers; its other counts are zero. */
  #block(kind: PassKind, segments: number): Uint32Array {
    const places = this.#places.arrays[kind];
    const block = this.#arena.u32(this.#places.blocks + blockOf[kind], PASS_BYTES / 4);
    block[PASS_SEGMENTS / 4] = segments;
    block[PASS_IDS / 4] = places.ids;
    block[PASS_POSITIONS / 4] = places.positions;
    block[PASS_ROW_SEGMENTS / 4] = places.rowSegments;
    block[PASS_DRAW_ROWS / 4] = places.drawRows;
    block[PASS_SEGMENT_TABLE / 4] = places.segments;
    block[PASS_ROPE / 4] = places.rope;
    this.#pageTable = places.pageTables;
    this.#paths = places.paths;
    return block;
  }

  #segment(table: number, index: number, segment: Segment, paths: number): void {
    const record = this.#arena.u32(table + index * SEGMENT_BYTES, SEGMENT_BYTES / 4);
    record[SEGMENT_FIRST_ROW / 4] = segment.firstRow;
    record[SEGMENT_ROWS / 4] = segment.rows;
    record[SEGMENT_STATE_SLOT / 4] = segment.stateSlot;
    record[SEGMENT_NEXT_SLOT / 4] = segment.nextSlot;
    record[SEGMENT_PAGES / 4] = this.#pageTable;
    record[SEGMENT_WINDOW / 4] = segment.window ? 1 : 0;
    record[SEGMENT_START / 4] = segment.start;
    record[SEGMENT_PATHS / 4] = paths;
    this.#arena.i32(this.#pageTable, segment.pages.length).set(segment.pages);
    this.#pageTable += 4 * segment.pages.length;
  }

  /** The paths of a tree's rows; 0 where each row's parent is the row before it. */
  #treePaths(segment: Segment): number {
    if (!isTree(segment)) return 0;
    const at = this.#paths;
    for (let local = 0; local < segment.rows; local++) this.#path(pathOf(segment, local));
    return at;
  }

  /** Writes a path; returns where. */
  #path(path: readonly number[]): number {
    const at = this.#paths;
    this.#arena.i32(at, path.length).set(path);
    this.#paths += 4 * WINDOW_ROWS;
    return at;
  }
}

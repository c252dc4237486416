import type { Plan } from "../../model/plan.ts";
import { writeRope } from "../../model/rope.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { KeptWindow } from "../windows.ts";
import type { Arena } from "./arena.ts";
import {
  PASS_BYTES,
  PASS_DRAW_ROWS,
  PASS_DRAWS,
  PASS_IDS,
  PASS_KEEPS,
  PASS_POSITIONS,
  PASS_ROPE,
  PASS_ROW_SEGMENTS,
  PASS_ROWS,
  PASS_SEGMENT_TABLE,
  PASS_SEGMENTS,
  SEGMENT_BYTES,
  SEGMENT_FIRST_ROW,
  SEGMENT_NEXT_SLOT,
  SEGMENT_PAGES,
  SEGMENT_ROWS,
  SEGMENT_STATE_SLOT,
  SEGMENT_WINDOW,
} from "./layout.ts";
import type { PassPlaces } from "./places.ts";

/** Writes a validated plan where the kernels read it. */
export function writePass(arena: Arena, shape: ModelShape, places: PassPlaces, plan: Plan): void {
  const rows = plan.ids.length;
  const block = arena.u32(places.block, PASS_BYTES / 4);
  block[PASS_ROWS / 4] = rows;
  block[PASS_DRAWS / 4] = plan.draws.length;
  block[PASS_SEGMENTS / 4] = plan.segments.length;
  block[PASS_KEEPS / 4] = 0;
  block[PASS_IDS / 4] = places.ids;
  block[PASS_POSITIONS / 4] = places.positions;
  block[PASS_ROW_SEGMENTS / 4] = places.rowSegments;
  block[PASS_DRAW_ROWS / 4] = places.drawRows;
  block[PASS_SEGMENT_TABLE / 4] = places.segments;
  block[PASS_ROPE / 4] = places.rope;
  arena.i32(places.ids, rows).set(plan.ids);
  arena.i32(places.drawRows, plan.draws.length).set(plan.draws.map((draw) => draw.row));
  const positions = arena.i32(places.positions, rows);
  const rowSegments = arena.i32(places.rowSegments, rows);
  let pageTable = places.pageTables;
  plan.segments.forEach((segment, index) => {
    const record = arena.u32(places.segments + index * SEGMENT_BYTES, SEGMENT_BYTES / 4);
    record[SEGMENT_FIRST_ROW / 4] = segment.firstRow;
    record[SEGMENT_ROWS / 4] = segment.rows;
    record[SEGMENT_STATE_SLOT / 4] = segment.stateSlot;
    record[SEGMENT_NEXT_SLOT / 4] = segment.nextSlot;
    record[SEGMENT_PAGES / 4] = pageTable;
    record[SEGMENT_WINDOW / 4] = segment.window ? 1 : 0;
    arena.i32(pageTable, segment.pages.length).set(segment.pages);
    pageTable += 4 * segment.pages.length;
    for (let local = 0; local < segment.rows; local++) {
      positions[segment.firstRow + local] = segment.start + local;
      rowSegments[segment.firstRow + local] = index;
    }
  });
  writeRope(arena.f32(places.rope, rows * shape.rotaryDim), positions, shape);
}

/** Writes a pass without rows that commits windows. */
export function writeKeep(arena: Arena, places: PassPlaces, windows: readonly KeptWindow[]): void {
  const block = arena.u32(places.block, PASS_BYTES / 4);
  block[PASS_ROWS / 4] = 0;
  block[PASS_DRAWS / 4] = 0;
  block[PASS_SEGMENTS / 4] = windows.length;
  block[PASS_KEEPS / 4] = windows.length;
  block[PASS_SEGMENT_TABLE / 4] = places.segments;
  windows.forEach(({ slot, rows }, index) => {
    const record = arena.u32(places.segments + index * SEGMENT_BYTES, SEGMENT_BYTES / 4);
    record[SEGMENT_FIRST_ROW / 4] = 0;
    record[SEGMENT_ROWS / 4] = rows;
    record[SEGMENT_STATE_SLOT / 4] = slot;
    record[SEGMENT_NEXT_SLOT / 4] = slot;
  });
}

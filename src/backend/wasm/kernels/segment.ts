// What kernels ask of the pass block: segments, and where their rows stand.
import {
  PASS_POSITIONS,
  PASS_ROW_SEGMENTS,
  PASS_SEGMENT_TABLE,
  SEGMENT_BYTES,
  SEGMENT_FIRST_ROW,
  SEGMENT_PATHS,
  SEGMENT_START,
  WINDOW_ROWS,
} from "../layout";

@inline
export function segmentAt(pass: usize, index: i32): usize {
  return (load<u32>(pass, PASS_SEGMENT_TABLE) as usize) + (index as usize) * SEGMENT_BYTES;
}

/** The segment of a row of the pass. */
@inline
export function segmentOf(pass: usize, row: i32): usize {
  const rowSegments = load<u32>(pass, PASS_ROW_SEGMENTS) as usize;
  return segmentAt(pass, load<i32>(rowSegments + ((row as usize) << 2)));
}

/** The absolute position of a row of the pass. */
@inline
export function positionOf(pass: usize, row: i32): i32 {
  return load<i32>((load<u32>(pass, PASS_POSITIONS) as usize) + ((row as usize) << 2));
}

/** Where a row of the pass lies in its stream's pages and features; a tree's rows lie side by side. */
@inline
export function placeOf(segment: usize, row: i32): i32 {
  return load<i32>(segment, SEGMENT_START) + row - load<i32>(segment, SEGMENT_FIRST_ROW);
}

/** The path of a segment's row, the root first; 0 in a chain. */
@inline
export function pathOf(segment: usize, local: i32): usize {
  const paths = load<u32>(segment, SEGMENT_PATHS) as usize;
  return paths ? paths + (((local * WINDOW_ROWS) as usize) << 2) : 0;
}

/** The segment's row that stands `depth` rows behind its start on a path; 0 for a chain's. */
@inline
export function rowOnPath(path: usize, depth: i32): i32 {
  return path ? load<i32>(path + ((depth as usize) << 2)) : depth;
}

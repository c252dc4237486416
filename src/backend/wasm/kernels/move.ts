// The kept rows of a tree lie side by side with those that are not kept; these move them to their places.
//
// A path's rows ascend, and row path[d] ≥ d goes to place d. In ascending order in place no row is
// overwritten before it has moved: whatever moves later comes from path[d + 1] > path[d] ≥ d or beyond.
import {
  ATTENTION_HEAD_DIM,
  ATTENTION_KV_HEADS,
  PASS_SEGMENTS,
  RING_ROW_BYTES,
  SEGMENT_ROWS,
  SEGMENT_START,
  SEGMENT_STATE_SLOT,
} from "../layout";
import { kvAt } from "./attention";
import { ringRow } from "./features";
import { pathOf, rowOnPath, segmentAt } from "./segment";
import { nextUnit, share } from "./sync";

/** MOVE_KV. Unit = (window, KV head). Operands: keys, values, attention record. */
export function moveKv(op: usize, pass: usize): void {
  const record = load<u32>(op, 16) as usize;
  const heads = load<i32>(record, ATTENTION_KV_HEADS);
  const bytes = (load<i32>(record, ATTENTION_HEAD_DIM) as usize) << 2;
  share(load<i32>(pass, PASS_SEGMENTS) * heads);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const segment = segmentAt(pass, unit / heads);
    const head = unit % heads;
    const start = load<i32>(segment, SEGMENT_START);
    const path = pathOf(segment, 0);
    for (let depth = firstMove(segment, path); depth < load<i32>(segment, SEGMENT_ROWS); depth++) {
      const from = kvAt(record, segment, start + rowOnPath(path, depth), head);
      const to = kvAt(record, segment, start + depth, head);
      memory.copy((load<u32>(op, 8) as usize) + to, (load<u32>(op, 8) as usize) + from, bytes);
      memory.copy((load<u32>(op, 12) as usize) + to, (load<u32>(op, 12) as usize) + from, bytes);
    }
  }
}

/** MOVE_FEATURES. Unit = window. Operands: ring record. */
export function moveFeatures(op: usize, pass: usize): void {
  const ring = load<u32>(op, 8) as usize;
  const bytes = load<u32>(ring, RING_ROW_BYTES) as usize;
  share(load<i32>(pass, PASS_SEGMENTS));
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    const segment = segmentAt(pass, unit);
    const slot = load<i32>(segment, SEGMENT_STATE_SLOT);
    const start = load<i32>(segment, SEGMENT_START);
    const path = pathOf(segment, 0);
    for (let depth = firstMove(segment, path); depth < load<i32>(segment, SEGMENT_ROWS); depth++) {
      const from = ringRow(ring, slot, start + rowOnPath(path, depth));
      memory.copy(ringRow(ring, slot, start + depth), from, bytes);
    }
  }
}

/** The first kept row that isn't at its place yet. */
function firstMove(segment: usize, path: usize): i32 {
  let depth: i32 = 0;
  while (depth < load<i32>(segment, SEGMENT_ROWS) && rowOnPath(path, depth) == depth) depth++;
  return depth;
}

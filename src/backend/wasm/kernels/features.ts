// A drafter's inputs: hidden states of the target, which each slot keeps by place in a ring of rows.
import { RING_AT, RING_ROWS, RING_ROW_BYTES, RING_SLOT_BYTES, SEGMENT_NEXT_SLOT } from "../layout";
import { placeOf, segmentOf } from "./segment";
import { nextUnit, share } from "./sync";

/** Where a slot's row of a place lies. */
@inline
export function ringRow(ring: usize, slot: i32, place: i32): usize {
  const slotBytes = load<u32>(ring, RING_SLOT_BYTES) as usize;
  const row = (place % load<i32>(ring, RING_ROWS)) as usize;
  const at = (load<u32>(ring, RING_AT) as usize) + (slot as usize) * slotBytes;
  return at + row * (load<u32>(ring, RING_ROW_BYTES) as usize);
}

/**
 * FEATURE copies a part of every row's features into the ring of its slot, GATHER whole rows out of it.
 * Unit = row. Operands: rows, stride, ring record, first byte in the ring's row, bytes.
 */
export function features(op: usize, pass: usize, rows: i32, gather: bool): void {
  const ring = load<u32>(op, 16) as usize;
  const bytes = load<u32>(op, 24) as usize;
  share(rows);
  for (let row = nextUnit(); row >= 0; row = nextUnit()) {
    const segment = segmentOf(pass, row);
    const slot = load<i32>(segment, SEGMENT_NEXT_SLOT);
    const kept = ringRow(ring, slot, placeOf(segment, row)) + (load<u32>(op, 20) as usize);
    const own = (load<u32>(op, 8) as usize) + (row as usize) * (load<u32>(op, 12) as usize);
    if (gather) memory.copy(own, kept, bytes);
    else memory.copy(kept, own, bytes);
  }
}

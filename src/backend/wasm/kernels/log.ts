// What SCAN leaves for KEEP: the log of a window's rows; and a slot's conv history.
//
// Raw rows record: {qkv, stride, history, history slot bytes, channels, taps − 1, log, log slot bytes, log
// row bytes}. A log row: raw qkv, keys, δ, decays.
import { SEGMENT_FIRST_ROW, SEGMENT_NEXT_SLOT, SEGMENT_ROWS, SEGMENT_STATE_SLOT } from "../layout";
import { pathOf, rowOnPath } from "./segment";

/** The log row of a window's row. */
@inline
export function logOf(record: usize, segment: usize, local: i32): usize {
  const slot = load<i32>(segment, SEGMENT_STATE_SLOT) as usize;
  const first = (load<u32>(record, 24) as usize) + slot * (load<u32>(record, 28) as usize);
  return first + (local as usize) * (load<u32>(record, 32) as usize);
}

/** Logs a window's raw rows, keys and decays; its δ are logged by the scan's units. */
export function logWindow(op: usize, record: usize, segment: usize): void {
  const keyBytes = ((load<i32>(op, 40) * load<i32>(op, 48)) as usize) << 2;
  const valueHeads = load<i32>(op, 44);
  const valueBytes = ((valueHeads * load<i32>(op, 52)) as usize) << 2;
  const rawBytes = (load<i32>(record, 16) as usize) << 2;
  const first = load<i32>(segment, SEGMENT_FIRST_ROW) as usize;
  const rows = load<i32>(segment, SEGMENT_ROWS) as usize;
  let to = logOf(record, segment, 0);
  for (let row = first; row < first + rows; row++) {
    const qkv = (load<u32>(record) as usize) + row * (load<u32>(record, 4) as usize);
    const keys = (load<u32>(op, 8) as usize) + row * (load<u32>(op, 12) as usize) + keyBytes;
    const gates = (load<u32>(op, 16) as usize) + row * (load<u32>(op, 20) as usize);
    memory.copy(to, qkv, rawBytes);
    memory.copy(to + rawBytes, keys, keyBytes);
    const decays = to + rawBytes + keyBytes + valueBytes;
    for (let head: usize = 0; head < (valueHeads as usize); head++) {
      store<f32>(decays + (head << 2), load<f32>(gates + (head << 3)));
    }
    to += load<u32>(record, 32) as usize;
  }
}

/**
 * The next slot's history: the last taps − 1 of (old history, raw rows). The rows are those of a chain or of
 * a window's kept path, and lie at `qkv`.
 */
export function publishHistory(record: usize, segment: usize, qkv: usize, stride: usize): void {
  const slotBytes = load<u32>(record, 12) as usize;
  const history = load<u32>(record, 8) as usize;
  const channelBytes = (load<i32>(record, 16) as usize) << 2;
  const depth = load<i32>(record, 20);
  const rows = load<i32>(segment, SEGMENT_ROWS);
  const path = pathOf(segment, 0);
  const from = history + (load<i32>(segment, SEGMENT_STATE_SLOT) as usize) * slotBytes;
  const to = history + (load<i32>(segment, SEGMENT_NEXT_SLOT) as usize) * slotBytes;
  for (let j: i32 = 0; j < depth; j++) {
    const row = rows - depth + j;
    const source =
      row >= 0
        ? qkv + (rowOnPath(path, row) as usize) * stride
        : from + ((row + depth) as usize) * channelBytes;
    memory.copy(to + (j as usize) * channelBytes, source, channelBytes);
  }
}

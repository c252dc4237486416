// The commit of windows: states and histories from the log.
import { SCAN_COLUMNS, SEGMENT_ROWS, SEGMENT_STATE_SLOT } from "../layout";
import { logOf, publishHistory } from "./log";
import { madd } from "./math";
import { unitColumns } from "./scan";
import { pathOf, rowOnPath, segmentAt } from "./segment";
import { nextUnit, share } from "./sync";

/**
 * KEEP. Commits a path of a window's rows: S ← g·S; S ← S + k·δᵀ with the logged k, δ and g, which are
 * the operations of SCAN in its order; then the conv history of the logged raw rows. Segments of the pass
 * are the windows, and their rows those to commit. Units as of SCAN, the histories last; a unit reads and writes its
 * own words.
 * Operands: state, state slot bytes, key heads, value heads, key dim, value dim, raw rows record (log.ts).
 */
export function keep(op: usize, pass: usize, windows: i32, threads: i32): void {
  const valueHeads = load<i32>(op, 20);
  const valueDim = load<i32>(op, 28);
  const columns = unitColumns(windows * valueHeads, valueDim, threads);
  const slices = valueDim / columns;
  const record = load<u32>(op, 32) as usize;
  const columnsUnits = windows * valueHeads * slices;
  share(columnsUnits + windows);
  for (let unit = nextUnit(); unit >= 0; unit = nextUnit()) {
    if (unit < columnsUnits) {
      const segment = segmentAt(pass, unit / (valueHeads * slices));
      const rest = unit % (valueHeads * slices);
      const from = (rest % slices) * columns;
      for (let column = from; column < from + columns; column += SCAN_COLUMNS)
        keepColumns(op, record, segment, rest / slices, column);
    } else {
      const segment = segmentAt(pass, unit - columnsUnits);
      const stride = load<u32>(record, 32) as usize;
      publishHistory(record, segment, logOf(record, segment, 0), stride);
    }
  }
}

function keepColumns(op: usize, record: usize, segment: usize, head: i32, column: i32): void {
  const keyHeads = load<i32>(op, 16);
  const valueHeads = load<i32>(op, 20);
  const keyDim = load<i32>(op, 24);
  const valueDim = load<i32>(op, 28);
  const keyHead = head / (valueHeads / keyHeads);
  const rowBytes = (valueDim as usize) << 2;
  const slot = load<i32>(segment, SEGMENT_STATE_SLOT) as usize;
  const state =
    (load<u32>(op, 8) as usize) +
    slot * (load<u32>(op, 12) as usize) +
    (((head * keyDim * valueDim + column) as usize) << 2);
  const raw = load<i32>(record, 16);
  const afterKeys = raw + keyHeads * keyDim;
  const path = pathOf(segment, 0);
  const rows = load<i32>(segment, SEGMENT_ROWS);
  for (let depth: i32 = 0; depth < rows; depth++) {
    const row = logOf(record, segment, rowOnPath(path, depth));
    const k = row + (((raw + keyHead * keyDim) as usize) << 2);
    const delta = row + (((afterKeys + head * valueDim + column) as usize) << 2);
    const decays = row + (((afterKeys + valueHeads * valueDim) as usize) << 2);
    const g = v128.load32_splat(decays + ((head as usize) << 2));
    const d0 = v128.load(delta);
    const d1 = v128.load(delta, 16);
    const d2 = v128.load(delta, 32);
    const d3 = v128.load(delta, 48);
    let s = state;
    for (let i: usize = 0; i < (keyDim as usize) << 2; i += 4) {
      const ki = v128.load32_splat(k + i);
      v128.store(s, madd(ki, d0, f32x4.mul(g, v128.load(s))));
      v128.store(s, madd(ki, d1, f32x4.mul(g, v128.load(s, 16))), 16);
      v128.store(s, madd(ki, d2, f32x4.mul(g, v128.load(s, 32))), 32);
      v128.store(s, madd(ki, d3, f32x4.mul(g, v128.load(s, 48))), 48);
      s += rowBytes;
    }
  }
}

// Activations of a panel of rows, laid out as panels.ts reads them: [four columns, row], so that one address
// walks them all; and the sums of their groups: [group, row].
import { horizontalSum } from "./math";

/** How many of the rows that are left go into the next panel. */
@inline
export function panelRows(left: i32): i32 {
  return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/** One row of a panel of `rows`: its sums to `sums`, its vectors to `out`. */
export function prepareRow(
  x: usize,
  cols: i32,
  group: i32,
  rows: i32,
  sums: usize,
  out: usize,
): void {
  const stride = (rows as usize) << 4;
  for (let c: i32 = 0; c < cols; c += group) {
    let sum = f32x4.splat(0);
    const end = x + ((group as usize) << 2);
    for (; x < end; x += 16) {
      const value = v128.load(x);
      sum = f32x4.add(sum, value);
      v128.store(out, value);
      out += stride;
    }
    store<f32>(sums, horizontalSum(sum));
    sums += (rows as usize) << 2;
  }
}

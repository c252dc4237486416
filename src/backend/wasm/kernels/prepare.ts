// Activations of one row, laid out as the affine kernels read them.

/**
 * Writes the row's group sums, then the row with element 4j + l of each code vector multiplied by
 * 2^(−shift·j): the kernels convert codes in place, as code · 2^(shift·j), and the two powers of two
 * cancel exactly in the product. `period` is the number of vectors that one code vector unpacks to
 * (8 for 4-bit, 4 for 8-bit); the last of them is shifted down by the kernel and stays unscaled.
 */
export function prepareAffine(
  x: usize,
  cols: i32,
  group: i32,
  period: i32,
  shift: i32,
  sums: usize,
  out: usize,
): void {
  const groups = cols / group;
  for (let g: i32 = 0; g < groups; g++) {
    let sum = f32x4.splat(0);
    for (let v: i32 = 0; v < group; v += 4) {
      const at = ((g * group + v) as usize) << 2;
      const value = v128.load(x + at);
      sum = f32x4.add(sum, value);
      const j = (v >> 2) % period;
      const power = j == period - 1 ? 127 : 127 - shift * j;
      v128.store(out + at, f32x4.mul(value, i32x4.splat(power << 23)));
    }
    store<f32>(
      sums + ((g as usize) << 2),
      f32x4.extract_lane(sum, 0) +
        f32x4.extract_lane(sum, 1) +
        (f32x4.extract_lane(sum, 2) + f32x4.extract_lane(sum, 3)),
    );
  }
}

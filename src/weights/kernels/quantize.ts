// Quantises groups of f32 to affine codes, as docs/formats.md says. All is f32 with true division, and
// `nearest` takes halves to even, so every code, scale and bias equals what scalar code makes. There is no
// sum; a least and a greatest value don't depend on their order.

/**
 * @param values f32 of whole groups, finite; `groupSize` is a multiple of 8
 * @param codes bit streams of the groups, one behind the other; up to 7 bytes behind them are overwritten
 * @param scales one f32 a group, as `biases`
 */
export function quantize(
  values: usize,
  groups: i32,
  groupSize: i32,
  bits: i32,
  codes: usize,
  scales: usize,
  biases: usize,
): void {
  const codeMax: i32 = (1 << bits) - 1;
  const groupBytes = (groupSize as usize) << 2;
  const least = i16x8.splat(0);
  const greatest = i16x8.splat(codeMax as i16);
  // Of two codes beside each other, the second stands above the first.
  const places = i32x4.splat(1 | (1 << (16 + bits)));
  for (let group = 0; group < groups; group++) {
    let lows = v128.load(values);
    let highs = lows;
    for (let at: usize = 16; at < groupBytes; at += 16) {
      const next = v128.load(values + at);
      lows = f32x4.pmin(lows, next);
      highs = f32x4.pmax(highs, next);
    }
    const low = -highest(f32x4.neg(lows));
    const high = highest(highs);
    const step = max<f32>((high - low) / (codeMax as f32), 1e-7);
    const lowIsEdge = abs(low) > abs(high);
    const edge = lowIsEdge ? low : high;
    let scale = lowIsEdge ? step : -step;
    let bias: f32 = 0;
    const edgeCode = nearest(edge / scale);
    if (edgeCode != 0) {
      scale = edge / edgeCode;
      bias = edge;
    }
    store<f32>(scales, scale);
    store<f32>(biases, bias);
    scales += 4;
    biases += 4;
    const divisors = f32x4.splat(scale);
    const shifts = f32x4.splat(bias);
    for (const end = values + groupBytes; values < end; values += 32) {
      const first = codesOf(v128.load(values), shifts, divisors);
      const second = codesOf(v128.load(values, 16), shifts, divisors);
      const eight = i16x8.min_s(i16x8.max_s(i16x8.narrow_i32x4_s(first, second), least), greatest);
      const pairs = i32x4.dot_i16x8_s(eight, places);
      const low4 = four(i64x2.extract_lane(pairs, 0), bits);
      const high4 = four(i64x2.extract_lane(pairs, 1), bits);
      // Eight codes are `bits` bytes; what is above them is overwritten by the next.
      store<u64>(codes, low4 | (high4 << (4 * bits)));
      codes += bits;
    }
  }
}

/** Codes of four values, not clamped yet. */
@inline
function codesOf(values: v128, shifts: v128, divisors: v128): v128 {
  const scaled = f32x4.div(f32x4.sub(values, shifts), divisors);
  return i32x4.trunc_sat_f32x4_s(f32x4.nearest(scaled));
}

/** Two pairs of codes, 32 bits apart, moved together. */
@inline
function four(pairs: u64, bits: i32): u64 {
  return (pairs & 0xffff_ffff) | ((pairs >> 32) << (2 * bits));
}

@inline
function highest(lanes: v128): f32 {
  return max(
    max(f32x4.extract_lane(lanes, 0), f32x4.extract_lane(lanes, 1)),
    max(f32x4.extract_lane(lanes, 2), f32x4.extract_lane(lanes, 3)),
  );
}

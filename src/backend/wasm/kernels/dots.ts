// Integer dot products of activations, in −127 … 127, with codes, in 0 … 15: in sums of 16 bits, or of 32 where
// the machine has one instruction for that (AVX-VNNI, ARM's dot product). Both are exact, so nothing but speed
// hangs on which is taken; without relaxed SIMD there is the first alone.

// Types that tell the kernels, when they are compiled, which it is; by their size.
export type Narrow = u8;
export type Wide = u16;

/** Products of two columns are at most 2 · 127 · 15, so that eight of these sums fit 16 bits, and no more. */
const NARROW_SPAN: i32 = 32;

/** Of a group's columns, how many may be added up, four to a vector, before addWords. */
@inline
export function spanOf<D>(group: i32): i32 {
  return sizeof<D>() == sizeof<Wide>() ? group : NARROW_SPAN;
}

/** Whether this thread takes sums of 32 bits. */
let wide: bool = false;

export function useWide(yes: bool): void {
  wide = yes;
}

@inline
export function isWide(): bool {
  return ASC_FEATURE_RELAXED_SIMD && wide;
}

/** Adds products of signed bytes `x` and codes `w`: of two columns to each 16 bits, or of four to each 32. */
@inline
export function addProducts<D>(sums: v128, x: v128, w: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) {
    if (sizeof<D>() == sizeof<Wide>()) return i32x4.relaxed_dot_i8x16_i7x16_add_s(x, w, sums);
    return i16x8.add(sums, i16x8.relaxed_dot_i8x16_i7x16_s(x, w));
  }
  const products = i16x8.add(i16x8.extmul_low_i8x16_s(x, w), i16x8.extmul_high_i8x16_s(x, w));
  return i16x8.add(sums, products);
}

// Without relaxed SIMD, products are added not in twos but each with the eighth after it, so that words would mix.
// Where it matters whose words are whose, both factors are put in another order there.

/** Codes whose words are to stay apart. */
@inline
export function apart(w: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return w;
  return v128.shuffle<i8>(w, w, 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
}

/** Four activations for each of four words. */
@inline
export function spread(x: usize): v128 {
  const same = v128.load32_splat(x);
  if (ASC_FEATURE_RELAXED_SIMD) return same;
  return v128.shuffle<i8>(same, same, 0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3);
}

/** Sums in four words, each of four neighbouring columns'. `ones` are eight. */
@inline
export function inWords<D>(sums: v128, ones: v128): v128 {
  return sizeof<D>() == sizeof<Wide>() ? sums : i32x4.dot_i16x8_s(sums, ones);
}

/** Adds the sums of a span, of which there is one a group where they are wide. */
@inline
export function addWords<D>(words: v128, sums: v128, ones: v128): v128 {
  return sizeof<D>() == sizeof<Wide>() ? sums : i32x4.add(words, inWords<D>(sums, ones));
}

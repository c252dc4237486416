// How the weights of a block of four rows come out of its bytes, two vectors of four columns at a time.
//
// In all formats four rows lie side by side: 16 bytes of each make a cache line. 4-bit: 32 columns; row n's 16
// bytes are four words, word l holding the codes of columns l, 4 + l, …, 28 + l in its nibbles, lowest first.
// 8-bit: 16 columns, byte j of word l is column 4j + l. bf16: 8 columns, word l holds column l in its low
// half and column 4 + l in its high half. f32: 4 columns.
//
// Loading from byte j on brings that byte's codes to the lowest bits, where a mask leaves them; from three
// bytes before it, to the highest, where a shift leaves the upper nibble. (Bytes beside the block are loaded
// too. They lie in the arena, and fall to the mask or the shift.)

// Types that tell the kernels, when they are compiled, which format they are for; by their size.
export type Nibbles = u8;
export type Bytes = u16;
export type Bf16 = u32;
export type Floats = u64;

@inline
function is<T, U>(): bool {
  return sizeof<T>() == sizeof<U>();
}

/** Whether weights are codes with a scale and a bias a group. */
@inline
export function isAffine<T>(): bool {
  return is<T, Nibbles>() || is<T, Bytes>();
}

/** The first four columns of a pair of vectors. */
@inline
export function lower<T>(bytes: v128, mask: v128): v128 {
  if (isAffine<T>()) return f32x4.convert_i32x4_s(v128.and(bytes, mask));
  if (is<T, Bf16>()) return i32x4.shl(bytes, 16);
  return bytes;
}

/** The next four columns. */
@inline
export function upper<T>(bytes: v128, mask: v128): v128 {
  if (is<T, Nibbles>()) return f32x4.convert_i32x4_s(i32x4.shr_u(bytes, 28));
  if (is<T, Bytes>()) return f32x4.convert_i32x4_s(v128.and(bytes, mask));
  if (is<T, Bf16>()) return v128.and(bytes, mask);
  return bytes;
}

/** Where, from a pair's address, the bytes for `lower` lie. */
@inline
export function lowerOffset<T>(): usize {
  return is<T, Nibbles>() ? 3 : 0;
}

/** Where those for `upper` do. */
@inline
export function upperOffset<T>(): usize {
  if (is<T, Bytes>()) return 1;
  return is<T, Floats>() ? 64 : 0;
}

/** The address of a block's first pair. */
@inline
export function firstPair<T>(block: usize): usize {
  return block - lowerOffset<T>();
}

/** Bytes from one pair to the next; after `runBytes` of them, `skipBytes` more. */
@inline
export function pairBytes<T>(): usize {
  if (is<T, Nibbles>()) return 1;
  if (is<T, Bytes>()) return 2;
  if (is<T, Bf16>()) return 64;
  return 128;
}

@inline
export function runBytes<T>(): usize {
  return isAffine<T>() ? 4 : pairBytes<T>();
}

@inline
export function skipBytes<T>(): usize {
  return isAffine<T>() ? 60 : 0;
}

/** Bytes of `cols` columns of four rows. */
@inline
export function blockBytes<T>(cols: i32): usize {
  if (is<T, Nibbles>()) return (cols as usize) << 1;
  if (is<T, Bytes>()) return (cols as usize) << 2;
  if (is<T, Bf16>()) return (cols as usize) << 3;
  return (cols as usize) << 4;
}

// Scales and biases: of each block and group four scales, then four biases, as f32 or, by their upper halves, as
// bf16. `S` is f32 or u16.

/** Bytes of a block's scales and biases of one group. */
@inline
export function scalesBytes<S>(): usize {
  return 8 * sizeof<S>();
}

/** The four scales of a group. */
@inline
export function scalesOf<S>(at: usize): v128 {
  return sizeof<S>() == 4 ? v128.load(at) : i32x4.shl(v128.load16x4_u(at), 16);
}

/** The four biases. */
@inline
export function biasesOf<S>(at: usize): v128 {
  return sizeof<S>() == 4 ? v128.load(at, 16) : i32x4.shl(v128.load16x4_u(at, 8), 16);
}

/** One row's scale, in all lanes. Dense weights have none, and where it would lie the memory may have ended. */
@inline
export function scaleOf<T, S>(at: usize, row: usize): v128 {
  if (!isAffine<T>()) return f32x4.splat(0);
  if (sizeof<S>() == 4) return v128.load32_splat(at + 4 * row);
  return i32x4.shl(v128.load16_splat(at + 2 * row), 16);
}

/** One array behind the other, in `all` where it is given: as long as they are together. */
export function concat(
  arrays: readonly Float32Array[],
  all: Float32Array = new Float32Array(arrays.reduce((sum, { length }) => sum + length, 0)),
): Float32Array {
  let at = 0;
  for (const array of arrays) {
    all.set(array, at);
    at += array.length;
  }
  return all;
}

/** Fills arrays, in their order, from what `concat` made of such. */
export function split(all: Float32Array, into: readonly Float32Array[]): void {
  let at = 0;
  for (const array of into) {
    array.set(all.subarray(at, at + array.length));
    at += array.length;
  }
}

/** Convolution weights [channels, taps] → [taps, channels]. */
export function transposed(values: Float32Array, taps: number): Float32Array {
  const channels = values.length / taps;
  return Float32Array.from(values, (_, index) => {
    const tap = Math.floor(index / channels);
    return values[(index % channels) * taps + tap]!;
  });
}

/** Below this many values the sum is a plain loop; up to `blockMax`, eight lanes. */
const lanes = 8;
const blockMax = 128;

/**
 * The sum of values[start, end) in numpy's pairwise order, so that a softmax has the reference
 * system's bits: halves on multiples of 8, eight accumulators in a block, the remainder last.
 */
export function pairwiseSum(values: Float64Array, start: number, end: number): number {
  const count = end - start;
  if (count < lanes) {
    let sum = 0;
    for (let i = start; i < end; i++) sum += values[i]!;
    return sum;
  }
  if (count > blockMax) {
    const half = count >> 1;
    const middle = start + half - (half % lanes);
    return pairwiseSum(values, start, middle) + pairwiseSum(values, middle, end);
  }
  const lane = new Float64Array(values.subarray(start, start + lanes));
  const wholeEnd = end - (count % lanes);
  for (let i = start + lanes; i < wholeEnd; i += lanes) {
    for (let j = 0; j < lanes; j++) lane[j]! += values[i + j]!;
  }
  const left = lane[0]! + lane[1]! + (lane[2]! + lane[3]!);
  const right = lane[4]! + lane[5]! + (lane[6]! + lane[7]!);
  let sum = left + right;
  for (let i = wholeEnd; i < end; i++) sum += values[i]!;
  return sum;
}

/**
 * How many of the first candidates hold `topP` of the probability: those before which less than
 * `topP` had gathered. At least 1.
 * @param scaled logits over temperature, descending; never empty.
 */
export function nucleusCount(scaled: Float64Array, topP: number): number {
  const weights = scaled.map((value) => Math.exp(value - scaled[0]!));
  const total = pairwiseSum(weights, 0, weights.length);
  let gathered = 0;
  for (let at = 0; at < weights.length; at++) {
    gathered += weights[at]! / total;
    if (gathered >= topP) return at + 1;
  }
  return weights.length;
}

import { expect, test } from "vitest";
import { Bf16Codebooks, edgeScores } from "./lattice.ts";

/** bf16 of small whole numbers and halves: the upper half of their f32 bits, little-endian. */
function bf16(values: readonly number[], offset = 0): Uint8Array {
  const bytes = new Uint8Array(offset + 2 * values.length);
  const view = new DataView(bytes.buffer);
  values.forEach((value, at) => {
    const whole = new DataView(new ArrayBuffer(4));
    whole.setFloat32(0, value);
    view.setUint16(offset + 2 * at, whole.getUint16(0), true);
  });
  return bytes.subarray(offset);
}

const predecessors = [1, 2, 3, -4, 5, 0.5];
const successors = [2, -1, 1, 4, 3, 6];

test.each([0, 1])("codebooks widen the row of a token, bytes from %i on", (offset) => {
  const books = new Bf16Codebooks(2, bf16(predecessors, offset), bf16(successors, offset));
  expect(books.predecessor(1)).toEqual(Float32Array.of(3, -4));
  expect(books.successor(2)).toEqual(Float32Array.of(3, 6));
});

test("an edge is the sum of predecessor · query · successor", () => {
  const books = new Bf16Codebooks(2, bf16(predecessors), bf16(successors));
  // 3·2·(2, 1, 3) + −4·0.5·(−1, 4, 6).
  const edges = edgeScores(books, Float32Array.of(2, 0.5), 1, Int32Array.of(0, 1, 2));
  expect([...edges]).toEqual([14, -2, 6]);
});

test("tables that don't agree, and tokens outside them, are refused", () => {
  expect(() => new Bf16Codebooks(2, bf16(predecessors), bf16([1, 2]))).toThrow(/codebooks/);
  expect(() => new Bf16Codebooks(4, bf16(predecessors), bf16(successors))).toThrow(/codebooks/);
  const books = new Bf16Codebooks(2, bf16(predecessors), bf16(successors));
  expect(() => books.successor(3)).toThrow(/token 3/);
  expect(() => books.predecessor(-1)).toThrow(/token -1/);
});

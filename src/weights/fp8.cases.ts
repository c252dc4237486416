import type { RawTensor } from "../checkpoint/files.cases.ts";
import { bf16FromF32, bytesOf, f32FromBf16, widen } from "./floats.ts";

/** The finite values of e4m3 by their byte, spelt out rather than computed as the reader does. */
function e4m3(byte: number): number {
  const [sign, exponent, fraction] = [byte >> 7, (byte >> 3) & 15, byte & 7];
  const magnitude =
    exponent === 0 ? (fraction / 8) * 2 ** -6 : (1 + fraction / 8) * 2 ** (exponent - 7);
  return sign === 1 ? -magnitude : magnitude;
}

const allValues = Array.from({ length: 256 }, (_, byte) => ({ byte, value: e4m3(byte) })).filter(
  ({ byte }) => (byte & 127) !== 127,
);

/** The byte whose value is nearest. */
function nearest(value: number): number {
  let best = allValues[0]!;
  for (const each of allValues) {
    if (Math.abs(each.value - value) < Math.abs(best.value - value)) best = each;
  }
  return best.byte;
}

/**
 * Tensors of bf16 with the projections of layers in fp8, in blocks of `[rows, cols]` with a bf16 scale
 * each; and what those hold then, by name.
 */
export function fp8Tensors(
  tensors: readonly RawTensor[],
  [blockRows, blockCols]: readonly [number, number],
): { readonly tensors: RawTensor[]; readonly values: ReadonlyMap<string, Float32Array> } {
  const values = new Map<string, Float32Array>();
  const made = tensors.flatMap((tensor): RawTensor[] => {
    const [rows = 0, cols = 0] = tensor.shape;
    if (tensor.shape.length !== 2 || !/layers\..*_proj\.weight$/.test(tensor.name)) return [tensor];
    const scaleCols = Math.ceil(cols / blockCols);
    const scales = new Uint16Array(Math.ceil(rows / blockRows) * scaleCols);
    const source = widen(tensor.data, "bf16");
    const codes = new Uint8Array(source.length);
    const own = new Float32Array(source.length);
    for (let block = 0; block < scales.length; block++)
      scales[block] = bf16FromF32(0.003 + block / 999);
    for (let i = 0; i < source.length; i++) {
      const [row, col] = [Math.floor(i / cols), i % cols];
      const block = Math.floor(row / blockRows) * scaleCols + Math.floor(col / blockCols);
      const scale = f32FromBf16(scales[block]!);
      const code = nearest(source[i]! / scale);
      codes[i] = code;
      own[i] = e4m3(code) * scale;
    }
    values.set(tensor.name, own);
    const shape = [Math.ceil(rows / blockRows), scaleCols];
    return [
      { ...tensor, dtype: "F8_E4M3", data: codes },
      { name: `${tensor.name}_scale_inv`, dtype: "BF16", shape, data: bytesOf(scales) },
    ];
  });
  return { tensors: made, values };
}

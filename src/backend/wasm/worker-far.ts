import { MATRIX_BYTES, MATRIX_COLS, SCRATCH_PREPARED } from "./layout.ts";
import { type FarImports, instantiate, type KernelExports, type ThreadFar } from "./platform.ts";

interface Far {
  readonly kernels: KernelExports;
  readonly bytes: Uint8Array;
  readonly places: ThreadFar;
}

/** An address as kernels give it, which JavaScript takes for a signed number. */
const unsigned = (address: number): number => address >>> 0;

/**
 * What a thread does for matrices in other memories: an instance of the kernels over each multiplies there, and
 * activations and outputs are copied between. The sums are those of the near memory's instance.
 */
export async function farImports(
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  far: readonly ThreadFar[],
  wide: boolean,
): Promise<FarImports> {
  const near = new Uint8Array(memory.buffer);
  const fars: Far[] = [];
  for (const places of far) {
    const kernels = await instantiate(module, places.memory);
    kernels.useWide(wide);
    fars.push({ kernels, bytes: new Uint8Array(places.memory.buffer), places });
  }
  const withRecord = (number: number, matrix: number): Far => {
    const one = fars[number - 1]!;
    const at = unsigned(matrix);
    one.bytes.set(near.subarray(at, at + MATRIX_BYTES), one.places.record);
    return one;
  };
  return {
    multiplyFar(
      number,
      matrix,
      int8,
      begin,
      n,
      rows,
      scratch,
      prepared,
      out,
      outStride,
      accumulate,
    ) {
      const { kernels, bytes, places } = withRecord(number, matrix);
      const from = unsigned(scratch) + SCRATCH_PREPARED;
      bytes.set(near.subarray(from, from + prepared), places.scratch + SCRATCH_PREPARED);
      const rowBytes = 16 * n;
      const ofRow = (row: number): [inNear: number, inFar: number] => [
        unsigned(out) + row * outStride,
        places.out + row * rowBytes,
      ];
      if (accumulate !== 0) {
        for (let row = 0; row < rows; row++) {
          const [inNear, inFar] = ofRow(row);
          bytes.set(near.subarray(inNear, inNear + rowBytes), inFar);
        }
      }
      kernels.multiply(
        places.record,
        int8 !== 0,
        begin,
        n,
        rows,
        places.scratch,
        places.out,
        rowBytes,
        accumulate !== 0,
      );
      for (let row = 0; row < rows; row++) {
        const [inNear, inFar] = ofRow(row);
        near.set(bytes.subarray(inFar, inFar + rowBytes), inNear);
      }
    },
    embedFar(number, matrix, id, out) {
      const { kernels, bytes, places } = withRecord(number, matrix);
      kernels.embedRow(places.record, id, places.out);
      const cols = new DataView(memory.buffer).getUint32(unsigned(matrix) + MATRIX_COLS, true);
      near.set(bytes.subarray(places.out, places.out + 4 * cols), unsigned(out));
    },
  };
}

import type { DrafterShape } from "../../model/drafter-shape.ts";
import type { RowBuffer } from "../../model/forward.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { Arena } from "./arena.ts";
import type { Places } from "./places.ts";
import type { PlacedTensors } from "./tensors.ts";

/** An op code, the place of its count in the pass block, and operands (`kernels/index.ts`). */
export type Instruction = readonly number[];

/** What steps of one kind of pass are encoded with. */
export interface Encoding {
  readonly arena: Arena;
  readonly tensors: PlacedTensors;
  readonly places: Places;
  readonly shape: ModelShape;
  readonly drafter: DrafterShape | null;
  /** Hidden states that passes return. */
  readonly taps: readonly number[];
  readonly activations: number;
  /** Places in the pass block of the counts of the pass's rows and of those that draw. */
  readonly rows: number;
  readonly draws: number;
  readonly normEps: number;
}

/** Address and stride of a row buffer. */
export function rowOf({ places }: Encoding, name: RowBuffer): [at: number, strideBytes: number] {
  const { at, strideBytes } = places.buffers.get(name)!;
  return [at, strideBytes];
}

/** Floats of a row buffer's rows. */
export const widthOf = ({ places }: Encoding, name: RowBuffer): number => places.widths.get(name)!;

const floatBits = new DataView(new ArrayBuffer(4));

/** The word that holds a float operand. */
export function floatWord(value: number): number {
  floatBits.setFloat32(0, value, true);
  return floatBits.getUint32(0, true);
}

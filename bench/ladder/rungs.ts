/** The rungs: a kernel for each matrix of a layer. README.md has what was measured. */
import { digits, halfPipeline, type LadderKernel, oneWarp, staged } from "./kernels.ts";

/** The projections of a GDN layer of the 27B shape: outputs and input columns. */
export const matrices = {
  gateUp: { outputs: 34816, inputs: 5120 },
  qkv: { outputs: 16512, inputs: 5120 },
  down: { outputs: 5120, inputs: 17408 },
  out: { outputs: 5120, inputs: 6144 },
} as const;

export type MatrixName = keyof typeof matrices;

export const matrixNames = Object.keys(matrices) as MatrixName[];

/** Slices of K of each matrix, those that a workgroup adds included. */
type Slices = readonly [gateUp: number, qkv: number, down: number, out: number];

/** Those that projection-layout.ts takes. */
const usual: Slices = [4, 2, 8, 8];
const moreOfDown: Slices = [4, 2, 17, 8];

export interface Part {
  readonly kernel: LadderKernel;
  readonly slices: number;
}

export interface Rung {
  readonly label: string;
  readonly parts: Readonly<Record<MatrixName, Part>>;
}

/** @param fewOutputs the kernel of `down` and `out`, where it is another */
function rung(
  label: string,
  slices: Slices,
  kernel: LadderKernel,
  fewOutputs: LadderKernel = kernel,
): Rung {
  return {
    label,
    parts: {
      gateUp: { kernel, slices: slices[0] },
      qkv: { kernel, slices: slices[1] },
      down: { kernel: fewOutputs, slices: slices[2] },
      out: { kernel: fewOutputs, slices: slices[3] },
    },
  };
}

type OneWarp = Parameters<typeof oneWarp>[0];

/** 2 tiles a warp and 4 blocks ahead; 1 and 2 where outputs are few. */
const mixed = (label: string, more: Partial<OneWarp> = {}, slices = moreOfDown): Rung =>
  rung(
    label,
    slices,
    oneWarp({ tiles: 2, ahead: 4, ...more }),
    oneWarp({ tiles: 1, ahead: 2, ...more }),
  );

const small = (label: string, more: Partial<OneWarp> = {}): Rung =>
  rung(label, moreOfDown, oneWarp({ tiles: 1, ahead: 4, ...more }));

export const rungs: readonly Rung[] = [
  rung("2 warps, x staged", usual, staged({ warps: 2, ahead: 4, rolled: true })),
  rung(
    "4 slices in a workgroup",
    [4, 4, 8, 8],
    staged({ warps: 4, together: 4, ahead: 2, rolled: false }),
  ),
  rung(
    "8 slices in a workgroup",
    [8, 8, 16, 8],
    staged({ warps: 8, together: 8, ahead: 2, rolled: false }),
  ),
  rung("half-block pipeline", usual, halfPipeline(2, 4)),
  mixed("one warp, as shipped", {}, usual),
  mixed("one warp"),
  rung("one warp, 2 tiles everywhere", usual, oneWarp({ tiles: 2, ahead: 4 })),
  mixed("one warp, quarters", { parts: 4 }),
  rung("one warp, x from storage", moreOfDown, oneWarp({ tiles: 2, ahead: 2, xFromStorage: true })),
  mixed("one warp, one buffer", { interleaved: true }),
  mixed("one warp, slices first", { slicesFirst: true }),
  small("one warp, 1 tile"),
  small("one warp, 1 tile, no barriers", { barriers: false }),
  small("one row, 2 warps", { warps: 2 }),
  rung("digits (result not right yet)", usual, digits(1, 4)),
];

/** Blocks of 64 columns of each slice. @throws RangeError where the matrix doesn't divide so */
export function perSlice(name: MatrixName, { kernel, slices }: Part): number {
  const { outputs, inputs } = matrices[name];
  const blocks = inputs / 64 / slices;
  if (Number.isInteger(blocks) && slices % kernel.together === 0 && outputs % kernel.columns === 0)
    return blocks;
  throw new RangeError(`${name}: ${slices} slices of workgroups of ${kernel.columns} outputs`);
}

import { invariant } from "../../errors.ts";
import type { Projection } from "../../model/forward.ts";
import { matrixFeature } from "./device.ts";
import type { Kernel } from "./pipelines.ts";
import type { ProgramBuilder } from "./program.ts";
import { partAt, roundUp, type TileVariant, variantFor, variantsFor } from "./projection-layout.ts";
import type { RowArray } from "./row-arrays.ts";
import { inputOf, type Project, tileRuns, updateOf } from "./tile-runs.ts";
import { type DeviceTiles, formDefines, tileRows } from "./tiles.ts";

/** Rows that one reading of the weights serves, and weight rows a lane group takes at a time (f32). */
const rowVariants: readonly { readonly rows: number; readonly weightRows: number }[] = [
  { rows: 1, weightRows: 4 },
  { rows: 2, weightRows: 4 },
  { rows: 4, weightRows: 2 },
  { rows: 8, weightRows: 2 },
];

const projectThreads = 128;

/** The projections of one input: one dispatch for each part of a matrix. */
export async function addProject(builder: ProgramBuilder, step: Project): Promise<void> {
  if (builder.options.arithmetic === "f32") {
    for (const projection of step.projections) await addLanes(builder, step, projection);
  } else {
    await addTiles(builder, step);
  }
}

async function addLanes(
  builder: ProgramBuilder,
  step: Project,
  { matrix: path, out, accumulate, outAt = 0, rows: rowsWanted }: Projection,
): Promise<void> {
  const draws = step.rows === "draws";
  const input = inputOf(step);
  const matrix = await builder.matrix(path);
  const { steps, groups, groupSize, scaleBytes, defines } = matrix;
  // Few weight rows leave the device idle, so several lane groups share each; fixed by the shape.
  const slices = matrix.rows <= 8192 && steps >= 4 ? 4 : 1;
  const kernels = new Map<number, Kernel>();
  for (const { rows, weightRows } of rowVariants) {
    const variant = {
      ...builder.defines,
      ...defines,
      SCALE_BYTES: scaleBytes,
      ROWS: rows,
      W_ROWS: weightRows,
      THREADS: projectThreads,
      SLICES: slices,
      PARTIALS: rows * weightRows * projectThreads,
    };
    kernels.set(rows, await builder.pipelines.get("project", variant));
  }
  const variantOf = (rows: number) =>
    rowVariants.find((variant) => variant.rows >= rows) ?? rowVariants.at(-1)!;
  // Workgroups beyond a dispatch's limit go on in the next line of it.
  const line = Math.min(32768, builder.device.limits.maxComputeWorkgroupsPerDimension);
  const end = rowsWanted ?? matrix.rows;
  for (const part of matrix.parts) {
    const partRows = Math.min(part.rows, end - part.firstRow);
    if (partRows <= 0) break;
    const parameters = [
      partRows,
      steps,
      builder.stride(input) / 4,
      builder.stride(out),
      accumulate ? 1 : 0,
      draws ? 1 : 0,
      groups,
      groupSize,
      partAt(outAt, matrix.rows) + part.firstRow,
      line,
    ];
    builder.push(
      [builder.buffer(input), part.codes, part.scales, builder.buffer(out)],
      parameters,
      (counts) => kernels.get(variantOf(draws ? counts.draws : counts.rows).rows)!,
      (counts) => {
        const rows = draws ? counts.draws : counts.rows;
        if (rows === 0) return [0, 0, 0];
        const variant = variantOf(rows);
        const perGroup = (projectThreads / 32 / slices) * variant.weightRows;
        const groupsOfRows = Math.ceil(partRows / perGroup);
        const x = Math.min(line, groupsOfRows);
        return [x, Math.ceil(rows / variant.rows), Math.ceil(groupsOfRows / line)];
      },
    );
  }
  if (out === "draftOut") builder.sublayer = builder.array(out);
}

async function addTiles(builder: ProgramBuilder, step: Project): Promise<void> {
  const { arrays } = builder.places;
  const { accumulate, out, rows: rowsWanted } = step.projections[0]!;
  const update = updateOf(step, arrays);
  const output = update ?? builder.array(out);
  for (const run of tileRuns(step, builder.tensors, arrays)) {
    await addTileDispatches(builder, step, await builder.tiles(run), output, rowsWanted);
  }
  if (accumulate) builder.pending = { update: output, convolution: null };
  else if (update) builder.sublayer = output;
}

async function addTileDispatches(
  builder: ProgramBuilder,
  step: Project,
  { blocks, form, parts }: DeviceTiles,
  output: RowArray,
  rowsWanted = Number.POSITIVE_INFINITY,
): Promise<void> {
  const input = inputOf(step);
  const draws = step.rows === "draws";
  const { device } = builder;
  const matrix = device.features.has(matrixFeature);
  const perSlice = Math.ceil(blocks / output.slices);
  const variants = variantsFor({
    kind: form.kind,
    outputs: output.stride,
    blocks,
    perSlice,
    // Without a matrix unit, loads aren't what takes the time.
    ahead: matrix ? 4 : 1,
    workgroupBytesMax: device.limits.maxComputeWorkgroupStorageSize,
  });
  const kernels = new Map<TileVariant, Kernel>();
  for (const variant of variants) {
    const defines = { ...formDefines(form), ...variant.defines, MATRIX: Number(matrix) };
    kernels.set(variant, await builder.kernel(variant.kernel, defines));
  }
  for (const part of parts) {
    const end = Math.min(part.firstColumn + part.columns, roundUp(rowsWanted, tileRows));
    if (end <= part.firstColumn) break;
    invariant(end <= output.stride, `${end} columns in rows of ${output.stride}`);
    const rowsOf = (counts: { draws: number; rows: number }) =>
      draws ? counts.draws : counts.rows;
    builder.push(
      [builder.buffer(input), part.codes, part.scales, output.buffer],
      [blocks, perSlice, output.stride, output.sliceStride, part.firstColumn],
      (counts) => kernels.get(variantFor(variants, rowsOf(counts)))!,
      (counts) => {
        const { rows, columns } = variantFor(variants, rowsOf(counts));
        return [
          (end - part.firstColumn) / columns,
          Math.ceil(rowsOf(counts) / rows),
          Math.ceil(blocks / perSlice),
        ];
      },
    );
  }
}

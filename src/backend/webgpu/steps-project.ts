import { invariant } from "../../errors.ts";
import type { Projection, Step } from "../../model/forward.ts";
import { matrixFeature } from "./device.ts";
import type { Kernel } from "./pipelines.ts";
import type { ProgramBuilder } from "./program.ts";
import { type TileVariant, variantFor, variantsFor } from "./projection-layout.ts";
import type { InputName } from "./row-arrays.ts";
import { type DeviceTiles, formDefines, sameForm, type TileMember } from "./tiles.ts";

type Project = Step & { readonly op: "project" };

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

/** The MLP's product has a buffer of its own here. */
const inputOf = (step: Project): InputName =>
  step.input === "gate" ? "activated" : (step.input as InputName);

async function addLanes(
  builder: ProgramBuilder,
  step: Project,
  { matrix: path, out, accumulate }: Projection,
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
  for (const part of matrix.parts) {
    const parameters = [
      part.rows,
      steps,
      builder.stride(input) / 4,
      builder.stride(out),
      accumulate ? 1 : 0,
      draws ? 1 : 0,
      groups,
      groupSize,
      part.firstRow,
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
        const groupsOfRows = Math.ceil(part.rows / perGroup);
        const x = Math.min(line, groupsOfRows);
        return [x, Math.ceil(rows / variant.rows), Math.ceil(groupsOfRows / line)];
      },
    );
  }
}

async function addTiles(builder: ProgramBuilder, step: Project): Promise<void> {
  const { updates } = builder.places.arrays;
  const input = inputOf(step);
  const { accumulate, out } = step.projections[0]!;
  const output = accumulate ? updates.get(input)! : builder.array(out);
  const members = step.projections.map(({ matrix, out: name }) => ({
    matrix: builder.weights.matrix(matrix),
    at: accumulate ? 0 : builder.array(name).offset,
  }));
  for (const alike of runsOfOneForm(members)) {
    const tiles = await builder.tiles(step.projections[0]!.matrix, alike);
    await addTileDispatches(builder, step, input, tiles, output);
  }
  if (accumulate) builder.pending = output;
}

/** Neighbours that may lie in one matrix. */
function runsOfOneForm(members: readonly TileMember[]): TileMember[][] {
  const runs: TileMember[][] = [];
  for (const member of members) {
    const run = runs.at(-1);
    if (run && sameForm(run[0]!.matrix, member.matrix)) run.push(member);
    else runs.push([member]);
  }
  return runs;
}

async function addTileDispatches(
  builder: ProgramBuilder,
  step: Project,
  input: InputName,
  { blocks, form, parts }: DeviceTiles,
  output: { buffer: GPUBuffer; stride: number; slices: number; sliceStride: number },
): Promise<void> {
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
    const end = part.firstColumn + part.columns;
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
          part.columns / columns,
          Math.ceil(rowsOf(counts) / rows),
          Math.ceil(blocks / perSlice),
        ];
      },
    );
  }
}

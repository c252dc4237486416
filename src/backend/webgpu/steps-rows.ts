import type { Step } from "../../model/forward.ts";
import type { Defines } from "./preprocess.ts";
import { bindingOf, floatWord, type ProgramBuilder } from "./program.ts";
import { formDefines } from "./tiles.ts";

export async function addEmbed(builder: ProgramBuilder, path: string): Promise<void> {
  const width = builder.shape.hiddenSize;
  const out = builder.buffer("hidden");
  const stride = builder.stride("hidden");
  if (builder.options.arithmetic === "f16") {
    const { blocks, form, parts } = await builder.tiles(path, [
      { matrix: builder.weights.matrix(path), at: 0 },
    ]);
    for (const { codes, scales, firstColumn, columns } of parts) {
      await builder.add(
        "embed_tiles",
        formDefines(form),
        [codes, scales, out],
        [width, blocks, stride, firstColumn, columns],
        ({ rows }) => [Math.ceil(width / 64), rows, 1],
      );
    }
    return;
  }
  const matrix = await builder.matrix(path);
  const { steps, groups, groupSize, scaleBytes } = matrix;
  for (const part of matrix.parts) {
    await builder.add(
      "embed",
      { ...matrix.defines, SCALE_BYTES: scaleBytes },
      [part.codes, part.scales, out],
      [width, steps, stride, groups, groupSize, part.firstRow, part.rows],
      ({ rows }) => [Math.ceil(width / 64), rows, 1],
    );
  }
}

/** The norm of the residual stream, after adding what is pending to it. */
export async function addNorm(builder: ProgramBuilder, step: Step & { op: "norm" }): Promise<void> {
  const draws = step.rows === "draws";
  const out = step.out === "normedDraw" ? "normedDraw" : "normed";
  const weight = await builder.vector(step.weight);
  const update = builder.pending;
  builder.pending = null;
  const width = builder.shape.hiddenSize;
  await builder.add(
    "norm",
    { ...normThreads(width, builder.device.limits), SLICES: update?.slices ?? 0 },
    // Where there is no update, the kernel doesn't look at the last one.
    [builder.buffer("hidden"), weight, builder.buffer(out), update?.buffer ?? weight],
    [
      width,
      builder.stride("hidden"),
      builder.stride(out),
      floatWord(builder.shape.normEps),
      draws ? 1 : 0,
      update?.stride ?? 0,
      update?.sliceStride ?? 0,
    ],
    (counts) => [1, draws ? counts.draws : counts.rows, 1],
  );
}

/** What the device allows of a workgroup's threads. */
type ThreadLimits = Pick<
  GPUSupportedLimits,
  "maxComputeInvocationsPerWorkgroup" | "maxComputeWorkgroupSizeX"
>;

/** Threads of norm.wgsl's workgroups: one for each quad of columns, where the device allows. */
export function normThreads(width: number, limits: ThreadLimits): Defines {
  const { maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupSizeX } = limits;
  const most = Math.min(maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupSizeX);
  const quads = width / 4;
  // A divisor of its 1024 lanes, and enough for its 32 parts.
  let threads = 1024;
  while (threads > 32 && (threads > most || threads >= 2 * quads)) threads /= 2;
  return { THREADS: threads, PER_THREAD: Math.ceil(quads / threads) };
}

export async function addSwiglu(builder: ProgramBuilder): Promise<void> {
  const width = builder.shape.intermediateSize;
  const gate = builder.array("gate");
  await builder.addRowWise(
    "swiglu",
    { SLICES: gate.slices },
    [bindingOf(gate), builder.buffer("up"), builder.buffer("activated")],
    [width, gate.stride, builder.stride("activated"), gate.sliceStride],
    Math.ceil(width / 4),
  );
}

/** Keeps the residual stream of each row as the pass's tap `tap`. */
export async function addTap(builder: ProgramBuilder, tap: number): Promise<void> {
  const width = builder.shape.hiddenSize;
  const update = builder.pending;
  const hidden = builder.buffer("hidden");
  await builder.addRowWise(
    "tap",
    { SLICES: update?.slices ?? 0 },
    [hidden, builder.places.taps[tap]!, update?.buffer ?? hidden],
    [width, builder.stride("hidden"), update?.stride ?? 0, update?.sliceStride ?? 0],
    width,
  );
}

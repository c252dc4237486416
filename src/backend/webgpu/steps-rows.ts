import type { Step } from "../../model/forward.ts";
import type { Defines } from "./preprocess.ts";
import { type Bound, bindingOf, floatWord, type Pending, type ProgramBuilder } from "./program.ts";
import type { InputName, RowArray } from "./row-arrays.ts";
import { dynamicTaps, featureParameters } from "./steps-draft.ts";
import { formDefines } from "./tiles.ts";

export async function addEmbed(builder: ProgramBuilder, path: string): Promise<void> {
  const width = builder.shape.hiddenSize;
  const out = builder.buffer("hidden");
  const stride = builder.stride("hidden");
  if (builder.options.arithmetic === "f16") {
    const { blocks, form, parts } = await builder.tiles([
      { matrix: builder.tensors.matrix(path), at: 0 },
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

/**
 * The norm of the residual stream, after adding what is pending to it; or of what a projection made. It
 * keeps the feature that the stream is then.
 */
export async function addNorm(builder: ProgramBuilder, step: Step & { op: "norm" }): Promise<void> {
  const draws = step.rows === "draws";
  // Only rows that draw are normed there, and all have features.
  if (draws && builder.feature !== null) await addFeature(builder);
  const out = step.out as InputName;
  const weight = await builder.vector(step.weight);
  const stream = step.input === "hidden";
  const pending = stream ? builder.pending : whole(builder.array(step.input));
  if (stream) builder.pending = null;
  const update = pending?.update;
  const width = builder.shape.hiddenSize;
  const more = await extrasOf(builder, pending);
  await builder.add(
    more.kernel,
    {
      ...normThreads(width, builder.device.limits),
      SLICES: update?.slices ?? 0,
      RESIDUAL: Number(stream),
      ...more.defines,
    },
    // Where there is no update, the kernel doesn't look at the last one.
    [builder.buffer("hidden"), weight, builder.buffer(out), bound(update, weight), ...more.buffers],
    [
      width,
      builder.stride("hidden"),
      builder.stride(out),
      floatWord(builder.normEps),
      draws ? 1 : 0,
      update?.stride ?? 0,
      update?.sliceStride ?? 0,
      ...more.parameters,
    ],
    (counts) => [1, draws ? counts.draws : counts.rows, 1],
  );
}

const whole = (update: RowArray): Pending => ({ update, convolution: null });

const bound = (update: RowArray | undefined, otherwise: Bound): Bound =>
  update ? bindingOf(update) : otherwise;

/** What a norm does besides, from its binding 6 and parameter 7 on. */
interface NormExtras {
  readonly kernel: "norm" | "norm_feature" | "norm_conv";
  readonly defines: Defines;
  readonly buffers: readonly Bound[];
  readonly parameters: readonly number[];
}

async function extrasOf(builder: ProgramBuilder, pending: Pending | null): Promise<NormExtras> {
  const defines = { FEATURE: 0, CONV: 0 };
  if (pending?.convolution) {
    const taps = await dynamicTaps(builder, pending.convolution, 7);
    return { kernel: "norm_conv", ...taps, defines: { ...defines, CONV: 1, ...taps.defines } };
  }
  const { feature } = builder;
  if (feature === null) return { kernel: "norm", defines, buffers: [], parameters: [] };
  builder.feature = null;
  return {
    kernel: "norm_feature",
    defines: { ...defines, FEATURE: 1 },
    buffers: [builder.places.drafter!.features],
    parameters: featureParameters(builder, feature),
  };
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

export async function addSwiglu(
  builder: ProgramBuilder,
  step: Step & { op: "swiglu" },
): Promise<void> {
  const gate = builder.array(step.gate);
  const up = builder.array(step.up);
  const out = step.gate === "gate" ? "activated" : "draftActivated";
  const { intermediateSize: width } = step.gate === "gate" ? builder.shape : builder.drafter!;
  await builder.addRowWise(
    "swiglu",
    { SLICES: gate.slices },
    [bindingOf(gate), bindingOf(up), builder.buffer(out)],
    [width, gate.stride, builder.stride(out), gate.sliceStride],
    Math.ceil(width / 4),
  );
}

/** Keeps the residual stream of each row as the pass's tap `tap`. */
export async function addTap(builder: ProgramBuilder, tap: number): Promise<void> {
  await addCopy(builder, { FEATURE: 0 }, builder.places.taps[tap]!, []);
}

/** Keeps it as the feature that it is, where no norm of all rows follows that could. */
async function addFeature(builder: ProgramBuilder): Promise<void> {
  const { features } = builder.places.drafter!;
  await addCopy(builder, { FEATURE: 1 }, features, featureParameters(builder, builder.feature!));
  builder.feature = null;
}

async function addCopy(
  builder: ProgramBuilder,
  defines: Defines,
  out: GPUBuffer,
  parameters: readonly number[],
): Promise<void> {
  const width = builder.shape.hiddenSize;
  const update = builder.pending?.update;
  const hidden = builder.buffer("hidden");
  await builder.addRowWise(
    "tap",
    { SLICES: update?.slices ?? 0, ...defines },
    [hidden, out, bound(update, hidden)],
    [width, builder.stride("hidden"), update?.stride ?? 0, update?.sliceStride ?? 0, ...parameters],
    width / 4,
  );
}

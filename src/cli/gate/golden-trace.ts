import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Backend, PassResult, Snapshot } from "../../backend/backend.ts";
import { planPass } from "../../model/plan.ts";
import { derivedSizes, type ModelShape } from "../../model/shape.ts";
import type { Weights } from "../../weights/weights.ts";
import type { GateRun } from "./gate-run.ts";
import {
  findReference,
  GoldenTensors,
  goldenPages,
  goldenSizes,
  type Tolerances,
  tolerancesOf,
} from "./golden-data.ts";
import { withWeights } from "./open-weights.ts";
import type { GateOptions } from "./options.ts";
import { candidatesOf, Timeline } from "./timeline.ts";

/** The taps of every layer's input and of the last one's output. */
export const everyLayer = (shape: ModelShape): number[] =>
  Array.from({ length: shape.layerTypes.length + 1 }, (_, layer) => layer);

/** The `copy` prompt of the bf16 model: hidden states, states, KV and logits. */
export async function traceCells(
  run: GateRun,
  backend: Backend,
  trace: GoldenTensors,
  finalNorm: Float32Array,
): Promise<void> {
  const ids = [...(await trace.i32("trace.ids"))];
  const { shape } = backend.info;
  const tolerances = tolerancesOf(backend);
  const { result, snapshot } = await passOver(backend, ids);
  for (let layer = 0; layer < shape.layerTypes.length; layer++) {
    await run.cell(`trace hidden ${layer}`, async () =>
      within(result.taps[layer]!, await trace.f32(`trace.hidden.${layer}`), tolerances.hidden),
    );
  }
  const layers = shape.layerTypes.length;
  await run.cell(`trace hidden ${layers}, normed`, async () =>
    within(
      normed(result.taps[layers]!, finalNorm, shape.normEps),
      await trace.f32(`trace.hidden.${layers}`),
      tolerances.hidden,
    ),
  );
  for (const layer of [0, 6]) {
    await run.cell(`trace recurrent state ${layer}`, async () =>
      within(
        stateOf(snapshot, shape, layer),
        await trace.f32(`trace.recurrent_state.${layer}`),
        tolerances.state,
      ),
    );
    await run.cell(`trace conv history ${layer}`, async () => {
      const rows = await trace.f32(`trace.conv_state.${layer}`);
      return within(historyOf(snapshot, shape, layer), latestRows(rows, shape), tolerances.hidden);
    });
  }
  await run.cell("trace keys 3", async () =>
    within(kvOf(snapshot.keys, shape, ids.length), await trace.f32("trace.k.3"), tolerances.hidden),
  );
  await run.cell("trace values 3", async () =>
    within(
      kvOf(snapshot.values, shape, ids.length),
      await trace.f32("trace.v.3"),
      tolerances.hidden,
    ),
  );
  await run.cell("trace logits", async () =>
    logitRows(result, await trace.f32("trace.logits"), shape.vocabSize, 8, tolerances),
  );
}

/** A random checkpoint in the multimodal wrapper's layout, with an untied head. */
export async function wrapperCells(run: GateRun, options: GateOptions): Promise<void> {
  const files = ["tiny_wrapper.safetensors", "tiny_wrapper_config.json", "tiny_trace.safetensors"];
  const [tensors, config, traceFile] = files.map((file) =>
    findReference(`golden/${file}`, options.references),
  );
  if (!tensors || !config || !traceFile) {
    run.skip("wrapper", `${files.join(", ")} are not here`);
    return;
  }
  const temporary = await mkdtemp(join(tmpdir(), "deltafold-gate-"));
  try {
    await copyFile(tensors, join(temporary, "model.safetensors"));
    await copyFile(config, join(temporary, "config.json"));
    await using trace = await GoldenTensors.open(traceFile);
    await withWeights(temporary, (weights) => compareWrapper(run, options, weights, trace));
  } finally {
    await rm(temporary, { recursive: true });
  }
}

async function compareWrapper(
  run: GateRun,
  options: GateOptions,
  weights: Weights,
  trace: GoldenTensors,
): Promise<void> {
  const { shape } = weights;
  await using backend = await options.open(goldenSizes(weights, everyLayer(shape)));
  const tolerances = tolerancesOf(backend);
  const { result, snapshot } = await passOver(backend, [...(await trace.i32("ids"))]);
  const layers = shape.layerTypes.length;
  await run.cell("wrapper logits", async () =>
    logitRows(result, await trace.f32("logits"), shape.vocabSize, 1, tolerances),
  );
  const finalNorm = await weights.vector("norm");
  for (let layer = 0; layer <= layers; layer++) {
    const raw = result.taps[layer]!;
    const hidden = layer < layers ? raw : normed(raw, finalNorm, shape.normEps);
    await run.cell(`wrapper hidden ${layer}`, async () =>
      within(hidden, await trace.f32(`hidden.${layer}`), tolerances.hidden),
    );
  }
  for (const layer of [0, 2]) {
    await run.cell(`wrapper recurrent state ${layer}`, async () =>
      within(
        stateOf(snapshot, shape, layer),
        await trace.f32(`recurrent_state.${layer}`),
        tolerances.state,
      ),
    );
  }
}

/** The reference's last hidden state is the one after the final norm; a tap is the one before. */
function normed(hidden: Float32Array, weight: Float32Array, eps: number): Float32Array {
  const width = weight.length;
  const out = new Float32Array(hidden.length);
  for (let at = 0; at < hidden.length; at += width) {
    let squares = 0;
    for (let i = 0; i < width; i++) squares += hidden[at + i]! ** 2;
    const scale = 1 / Math.sqrt(squares / width + eps);
    for (let i = 0; i < width; i++) out[at + i] = hidden[at + i]! * scale * weight[i]!;
  }
  return out;
}

/** Feeds `ids` in one pass in which every row draws its whole logits. */
async function passOver(backend: Backend, ids: readonly number[]) {
  const timeline = new Timeline(backend, 0, goldenPages);
  const plan = planPass([{ ...timeline.segment(ids, 0), draw: "all" }]);
  const result = await backend.read(backend.prefill(plan));
  timeline.advance(ids.length);
  const snapshot = await timeline.save();
  timeline.close();
  return { result, snapshot };
}

function within(actual: Float32Array, expected: Float32Array, tolerance: (peak: number) => number) {
  const peak = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  let worst = actual.length === expected.length ? 0 : Number.POSITIVE_INFINITY;
  actual.forEach((value, at) => {
    worst = Math.max(worst, Math.abs(value - expected[at]!));
  });
  // NaN compares false.
  const ok = worst <= tolerance(peak);
  return { ok, detail: `within ${worst.toExponential(1)} of ${peak.toExponential(1)}` };
}

/** Compares every `step`-th row's logits with the rows of `expected`. */
function logitRows(
  result: PassResult,
  expected: Float32Array,
  vocabSize: number,
  step: number,
  tolerances: Tolerances,
) {
  const rows = expected.length / vocabSize;
  const actual = new Float32Array(expected.length);
  for (let row = 0; row < rows; row++) {
    const { ids, logits } = candidatesOf(result, row * step);
    ids.forEach((id, at) => {
      actual[row * vocabSize + id] = logits[at]!;
    });
  }
  return within(actual, expected, () => tolerances.logits);
}

function linearIndex(shape: ModelShape, layer: number): number {
  return shape.layerTypes.slice(0, layer).filter((type) => type === "linear").length;
}

function stateOf(snapshot: Snapshot, shape: ModelShape, layer: number): Float32Array {
  const { stateFloats } = derivedSizes(shape);
  const at = linearIndex(shape, layer) * stateFloats;
  return snapshot.state.subarray(at, at + stateFloats);
}

function historyOf(snapshot: Snapshot, shape: ModelShape, layer: number): Float32Array {
  const { historyFloats } = derivedSizes(shape);
  const at = linearIndex(shape, layer) * historyFloats;
  return snapshot.history.subarray(at, at + historyFloats);
}

/** The reference's [channel, last 4 rows] as our [last taps − 1 rows, channel]. */
function latestRows(values: Float32Array, shape: ModelShape): Float32Array {
  const { convDim } = derivedSizes(shape);
  const depth = shape.convTaps - 1;
  const kept = values.length / convDim;
  const rows = new Float32Array(depth * convDim);
  for (let row = 0; row < depth; row++) {
    for (let channel = 0; channel < convDim; channel++) {
      rows[row * convDim + channel] = values[channel * kept + kept - depth + row]!;
    }
  }
  return rows;
}

/** The first full layer's [row, KV head, dim] as the reference's [KV head, row, dim]. */
function kvOf(values: Float32Array, shape: ModelShape, rows: number): Float32Array {
  const { kvHeadCount, headDim } = shape;
  const out = new Float32Array(rows * kvHeadCount * headDim);
  for (let head = 0; head < kvHeadCount; head++) {
    for (let row = 0; row < rows; row++) {
      const from = (row * kvHeadCount + head) * headDim;
      out.set(values.subarray(from, from + headDim), (head * rows + row) * headDim);
    }
  }
  return out;
}

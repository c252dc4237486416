import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Backend } from "../../backend/backend.ts";
import { convertCheckpoint } from "../../weights/convert-node.ts";
import type { Weights } from "../../weights/weights.ts";
import type { GateRun } from "./gate-run.ts";
import {
  findReference,
  GoldenTensors,
  type GreedyCase,
  type GreedyRun,
  goldenPages,
  goldenSizes,
  readGreedy,
  tolerancesOf,
} from "./golden-data.ts";
import { everyLayer, traceCells, wrapperCells } from "./golden-trace.ts";
import { withWeights } from "./open-weights.ts";
import { describeBackend, type GateOptions } from "./options.ts";
import { candidatesOf, Timeline } from "./timeline.ts";

const embedded = "nano";

/** The demo model in bf16, 4 and 8 bits, and a wrapper checkpoint, against transformers' outputs. */
export async function goldenGate(run: GateRun, options: GateOptions): Promise<string> {
  const greedyFile = findReference("golden/nano_greedy.json", options.references);
  const traceFile = findReference("golden/nano_trace.safetensors", options.references);
  if (!greedyFile || !traceFile) {
    run.skip("all", "golden/nano_greedy.json and nano_trace.safetensors were not found");
    return "none";
  }
  const greedy = readGreedy(greedyFile);
  await using trace = await GoldenTensors.open(traceFile);
  const config = findReference("models/nano/config.json", options.references);
  const originals = config && dirname(config);
  let device = "none";
  const cells = async (name: GreedyRun, weights: Weights) => {
    const taps = name === "bf16" ? everyLayer(weights.shape) : [];
    await using backend = await options.open(goldenSizes(weights, taps));
    device = describeBackend(backend);
    for (const golden of greedy[name]) {
      const logits = await trace.f32(`${name}.last_logits.${golden.name}`);
      await run.cell(`${name} ${golden.name}`, () => greedyCell(backend, golden, logits));
    }
    if (name === "bf16") await traceCells(run, backend, trace, await weights.vector("norm"));
  };
  await withWeights(embedded, (weights) => cells("q4", weights));
  if (originals) {
    await withWeights(originals, (weights) => cells("bf16", weights));
    await withConverted(originals, (weights) => cells("q8", weights));
  } else {
    for (const name of ["bf16", "q8"])
      run.skip(name, "the bf16 originals (models/nano) are not here");
  }
  await wrapperCells(run, options);
  return device;
}

/** Calls `use` with the originals at 8 bits, from a temporary folder. */
async function withConverted(
  originals: string,
  use: (weights: Weights) => Promise<void>,
): Promise<void> {
  const temporary = await mkdtemp(join(tmpdir(), "deltafold-gate-"));
  try {
    const path = join(temporary, "nano-8bit");
    await convertCheckpoint(originals, path, { bits: 8, groupSize: 64 });
    await withWeights(path, use);
  } finally {
    await rm(temporary, { recursive: true });
  }
}

/** Greedy tokens as far as every margin is clear, and the logits at the prompt's last row. */
async function greedyCell(backend: Backend, golden: GreedyCase, expected: Float32Array) {
  const timeline = new Timeline(backend, 0, goldenPages);
  const first = candidatesOf(await timeline.feed(golden.prompt_ids, 0));
  let worst = 0;
  first.ids.forEach((id, at) => {
    worst = Math.max(worst, Math.abs(first.logits[at]! - expected[id]!));
  });
  const tolerances = tolerancesOf(backend);
  const unclear = golden.margins.findIndex((margin) => margin < tolerances.margin);
  const compared = unclear < 0 ? golden.greedy_ids.length : unclear;
  let id = first.ids[0]!;
  let equal = 0;
  while (equal < compared && id === golden.greedy_ids[equal]) {
    equal++;
    if (equal < compared) id = candidatesOf(await timeline.feed([id])).ids[0]!;
  }
  timeline.close();
  const all = golden.greedy_ids.length;
  const tokens =
    compared > 0
      ? `${equal} of ${compared} tokens equal, ${compared} of ${all} compared`
      : `none of ${all} tokens was compared`;
  return {
    ok: compared > 0 && equal === compared && worst <= tolerances.logits,
    detail: `${tokens}, logits within ${worst.toExponential(1)}`,
  };
}

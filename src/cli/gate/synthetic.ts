import type { Backend } from "../../backend/backend.ts";
import type { GateRun } from "./gate-run.ts";
import { describeBackend, type GateOptions } from "./options.ts";
import {
  type Cell,
  chunkRows,
  chunks,
  keeps,
  moved,
  poison,
  snapshots,
} from "./synthetic-cells.ts";
import { type Graph, syntheticGraph } from "./synthetic-graphs.ts";
import { Truth, truthSizes } from "./synthetic-truth.ts";
import { randomInts } from "./timeline.ts";

const seed = 20261130;
const sampleGraphs = 12;
const fullGraphs = 84;
/** Backends that can also scan into another state and copy it home. */
const copying: ReadonlySet<string> = new Set(["webgpu"]);

/**
 * Random little models, so that any machine can run it without files: every way that leads to a position
 * makes the state, KV, logits and next 8 greedy tokens that one row at a time makes.
 */
export async function syntheticGate(run: GateRun, options: GateOptions): Promise<string> {
  let device = "";
  const graphs = options.full ? fullGraphs : sampleGraphs;
  for (let index = 0; index < graphs; index++) {
    const graph = syntheticGraph(seed, index);
    await using backend = await options.open({ ...truthSizes, weights: graph.weights });
    device = describeBackend(backend);
    await graphCells(run, options, graph, backend, seed + index);
  }
  if (!options.full) run.skip(`graphs ${graphs} to ${fullGraphs - 1}`, "--full runs them");
  return `${device}; seed ${seed}`;
}

async function graphCells(
  run: GateRun,
  options: GateOptions,
  { name, weights }: Graph,
  backend: Backend,
  graphSeed: number,
): Promise<void> {
  // Made by the first cell: a sample that is out of time makes none.
  let truth: Promise<Truth> | null = null;
  const cell = (what: string, check: Cell) =>
    run.cell(`${name}: ${what}`, async () => {
      truth ??= Truth.of(backend, graphSeed);
      return { ok: true, detail: await check(backend, await truth, randomInts(graphSeed)) };
    });
  await cell("partial keeps", keeps);
  await cell("moved slots", moved);
  await cell("NaN beside and before", poison);
  await cell("snapshots", snapshots);
  if (copying.has(backend.info.name)) {
    await cell("scan and copy", async (_, against, random) => {
      const sizes = { ...truthSizes, weights };
      await using copies = await options.open({ ...sizes, gdnPath: "copy" });
      const ran = [
        await chunks([1, 7, 64], options.full)(copies, against, random),
        await keeps(copies, against, random),
        await moved(copies, against, random),
      ];
      return ran.join("; ");
    });
  } else {
    run.skip(`${name}: scan and copy`, "this backend has only the scan in place");
  }
  await cell("chunks", chunks(chunkRows, options.full));
}

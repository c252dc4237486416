import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Checkpoint, openCheckpoint } from "../../checkpoint/checkpoint.ts";
import { openDrafter } from "../../checkpoint/drafter.ts";
import { memoryFolder, type RawTensor, safetensorsFile } from "../../checkpoint/files.cases.ts";
import { readSafetensorsHeader } from "../../checkpoint/safetensors.ts";
import { openFolder } from "../../checkpoint/source-node.ts";
import { Bf16Codebooks, edgeScores } from "../../draft/lattice.ts";
import { pageId, slotId, type TokenId } from "../../ids.ts";
import { type Plan, planPass, type SegmentRequest } from "../../model/plan.ts";
import { tinyShape } from "../../model/tiny-shape.ts";
import { drafterFromCheckpoint } from "../../weights/drafter-from-checkpoint.ts";
import { widen } from "../../weights/floats.ts";
import { weightsFromCheckpoint } from "../../weights/from-checkpoint.ts";
import { randomWeights } from "../../weights/random.ts";
import type { BackendOptions, PassResult } from "../backend.ts";
import { orderCandidates } from "../candidates.ts";
import { firstRows } from "../windows.ts";
import { loadReference, referenceSteps } from "./load.ts";
import { featuresOf, referenceMemory } from "./memory.ts";
import { ReferencePass } from "./pass.ts";
import { ReferenceBackend } from "./reference.ts";
import { rmsNorm } from "./tensors.ts";

const shared = join(import.meta.dirname, "../../../../shared");
const isThere = existsSync(join(shared, "golden")) && existsSync(join(shared, "models"));
const sizes = { slots: 1, pages: 4, rowsMax: 64, drawsMax: 16, taps: [] };

/** Rows of the one stream. */
function planOf(
  ids: readonly TokenId[],
  start: number,
  draw: SegmentRequest["draw"],
  changes: Partial<SegmentRequest> = {},
): Plan {
  const slot = { stateSlot: slotId(0), nextSlot: slotId(0), pages: [0, 1, 2, 3].map(pageId) };
  return planPass([{ ids, start, ...slot, draw, candidates: 0, ...changes }]);
}

const zeros = (rows: number): TokenId[] => new Array(rows).fill(0);

/** A model with its drafter, whose passes show their row buffers. */
async function openPasses(weights: Pick<BackendOptions, "weights" | "drafter">) {
  const options = { ...weights, ...sizes };
  const tensors = await loadReference(options);
  const steps = referenceSteps(options);
  const memory = referenceMemory(options);
  const { shape } = weights.weights;
  const drafter = weights.drafter!.weights.shape;
  const pass = (plan: Plan) => new ReferencePass({ shape, drafter, tensors, memory, plan });
  /** What the drafter's final norm makes of every row of a block, its anchor's too. */
  const normed = (block: ReferencePass): Float32Array[] =>
    block.rows("hidden").map((row) => {
      const out = new Float32Array(row.length);
      rmsNorm(row, tensors.vector("draft.norm"), drafter.normEps, out);
      return out;
    });
  return { pass, steps, memory, drafter, normed };
}

/** The largest difference of rows from the expected ones, which lie one behind the other. */
function worst(rows: readonly Float32Array[], expected: Float32Array): number {
  const width = expected.length / rows.length;
  return rows
    .flatMap((row, at) => [...row].map((value, i) => Math.abs(value - expected[at * width + i]!)))
    .reduce((most, value) => Math.max(most, value), 0);
}

/** A greedy reply of nano, drafted by the reference drafter. */
interface GoldenCase {
  readonly prompt_ids: readonly number[];
  readonly output_ids: readonly number[];
  readonly rounds: readonly {
    readonly anchor_pos: number;
    readonly drafts: readonly number[];
    readonly accepted: number;
  }[];
  /** The likeliest tokens of the first block's first row, ascending. */
  readonly first_row_candidates: readonly number[];
}

function goldenCase(name: string): GoldenCase {
  return JSON.parse(readFileSync(join(shared, "golden/drafter.json"), "utf8")).cases[name];
}

/** All tensors of a trace, by name. */
async function goldenTensors(file: string): Promise<ReadonlyMap<string, RawTensor>> {
  const source = await (await openFolder(join(shared, "golden"))).open(file);
  try {
    const { tensors } = await readSafetensorsHeader(source);
    const raw = new Map<string, RawTensor>();
    for (const { name, dtype, shape, offset, bytes } of tensors) {
      raw.set(name, { name, dtype, shape, data: await source.read(offset, bytes) });
    }
    return raw;
  } finally {
    await source.close();
  }
}

async function openNano(nano: Checkpoint) {
  const folder = await openFolder(join(shared, "models/nano-dflash2"));
  const drafter = await openDrafter(folder);
  const loaded = await drafterFromCheckpoint(drafter, nano.config.shape, 0);
  const weights = await weightsFromCheckpoint(nano);
  return { ...loaded, options: { weights, drafter: { weights: loaded.weights } }, drafter };
}

const originals = () => openFolder(join(shared, "models/nano")).then(openCheckpoint);

describe.skipIf(!isThere)("with the drafter's outputs in ../shared/golden", () => {
  test.each(["copy", "story"])("DFlash2 on nano: the first block of %s", async (name) => {
    await using nano = await originals();
    const { options, drafter } = await openNano(nano);
    await using _ = drafter;
    const stream = await openPasses(options);
    const { prompt_ids: prompt, output_ids, first_row_candidates } = goldenCase(name);
    for (let at = 0; at < prompt.length; at += 40) {
      const plan = planOf(prompt.slice(at, at + 40), at, "none");
      stream.pass(plan).run(stream.steps.forward);
      stream.pass(plan).run(stream.steps.context);
    }
    const { blockRows, maskId } = stream.drafter;
    const ids = [output_ids[0]!, ...zeros(blockRows - 1).map(() => maskId)];
    const block = stream.pass(planOf(ids, prompt.length, "block")).run(stream.steps.block);
    const trace = await goldenTensors("drafter_trace.safetensors");
    const hidden = widen(trace.get(`${name}.hidden`)!.data, "f32");
    const logits = widen(trace.get(`${name}.logits`)!.data, "f32");
    expect(worst(stream.normed(block), hidden)).toBeLessThan(1e-3);
    expect(worst(block.rows("logits"), logits)).toBeLessThan(1e-3);
    const first = orderCandidates(block.rows("logits")[0]!, 16, prompt.length + 1);
    expect([...first.ids].sort((a, b) => a - b)).toEqual(first_row_candidates);
  });

  test.each(["copy", "story"])("DFlash2 on nano: all rounds of %s", async (name) => {
    await using nano = await originals();
    const { options, codebooks, drafter } = await openNano(nano);
    await using _ = drafter;
    const { prompt_ids: prompt, output_ids, rounds } = goldenCase(name);
    await using backend = await ReferenceBackend.open({ ...options, ...sizes });
    backend.open(slotId(0));
    const first = await backend.read(backend.prefill(planOf(prompt, 0, "last", { candidates: 1 })));
    backend.extend(planOf(zeros(prompt.length), 0, "none"));
    const ids = best(first);
    const { predecessor, successor, rank } = codebooks!;
    const books = new Bf16Codebooks(rank, predecessor, successor);
    const { blockRows, maskId, candidates } = backend.info.drafter!;
    for (const { anchor_pos: start, drafts, accepted } of rounds) {
      expect(start).toBe(prompt.length + ids.length - 1);
      const block = [ids.at(-1)!, ...zeros(blockRows - 1).map(() => maskId)];
      const plan = planOf(block, start, "block", { candidates });
      const path = likeliestPath(await backend.read(backend.draft(plan)), books, block[0]!);
      expect(path).toEqual(drafts);
      const window = { candidates: 1, window: true };
      const handle = backend.verify(planOf([block[0]!, ...path], start, "all", window));
      const drawn = best(await backend.read(handle));
      const right = path.findIndex((id, row) => id !== drawn[row]);
      // A reply's end cuts its last round.
      const left = output_ids.length - ids.length;
      const kept = Math.min(left, 1 + (right < 0 ? path.length : right));
      expect(kept - 1).toBe(accepted);
      backend.keep(handle, [firstRows(kept)]);
      backend.extend(planOf(zeros(kept), start, "none"));
      ids.push(...drawn.slice(0, kept));
    }
    expect(ids).toEqual(output_ids);
  });

  test("DFlash: two blocks behind a context that grows", async () => {
    const trace = await goldenTensors("dflash1_trace.safetensors");
    const own = [...trace.values()].flatMap((tensor) =>
      tensor.name.startsWith("weights.") ? [{ ...tensor, name: tensor.name.slice(8) }] : [],
    );
    const files = new Map<string, string | Uint8Array>([
      ["config.json", readFileSync(join(shared, "golden/dflash1_config.json"), "utf8")],
      ["model.safetensors", safetensorsFile(own)],
    ]);
    const shape = tinyShape({ vocabSize: 512, hiddenSize: 256 });
    await using drafter = await openDrafter(memoryFolder(files));
    const { weights } = await drafterFromCheckpoint(drafter, shape, 0);
    const target = randomWeights(shape, { seed: 1, bits: "bf16" });
    const stream = await openPasses({ weights: target, drafter: { weights } });
    const floats = (name: string) => widen(trace.get(name)!.data, "f32");
    const width = 2 * shape.hiddenSize;
    let start = 0;
    for (const round of [1, 2]) {
      const taps = floats(`taps.${round}`);
      const end = start + taps.length / width;
      for (let place = start; place < end; place++) {
        const at = (place - start) * width;
        featuresOf(stream.memory.slots[0]!, place).set(taps.subarray(at, at + width));
      }
      stream.pass(planOf(zeros(end - start), start, "none")).run(stream.steps.context);
      const block = stream.pass(planOf(zeros(6), end, "none"));
      const rows = floats(`block.${round}`);
      block.rows("hidden").forEach((row, at) => {
        row.set(rows.subarray(at * row.length, (at + 1) * row.length));
      });
      // The rows come as embeddings, and leave before the final norm and the head.
      block.run(stream.steps.block.slice(1, -2));
      expect(worst(stream.normed(block), floats(`out.${round}`)), `${round}`).toBeLessThan(1e-3);
      start = end;
    }
  });
});

/** Each draw's likeliest token. */
const best = ({ draws }: PassResult): TokenId[] =>
  draws.map((draw) => {
    if (draw instanceof Error) throw draw;
    return draw.ids[0]!;
  });

/** The selector's greedy path: each token by its logit and how well it follows the one before. */
function likeliestPath(
  { draws, selector }: PassResult,
  codebooks: Bf16Codebooks,
  anchor: TokenId,
): TokenId[] {
  const { rank } = codebooks;
  const path: TokenId[] = [];
  draws.forEach((draw, row) => {
    if (draw instanceof Error) throw draw;
    const query = selector!.subarray(row * rank, (row + 1) * rank);
    const edges = edgeScores(codebooks, query, path.at(-1) ?? anchor, draw.ids);
    const scores = edges.map((edge, at) => draw.logits[at]! + edge);
    path.push(draw.ids[scores.indexOf(Math.max(...scores))]!);
  });
  return path;
}

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { orderCandidates } from "../backend/candidates.ts";
import { readSafetensorsHeader } from "../checkpoint/safetensors.ts";
import { openFolder } from "../checkpoint/source-node.ts";
import { widen } from "../weights/floats.ts";
import { Bf16Codebooks, type Lattice } from "./lattice.ts";
import type { DraftPoint } from "./scores.ts";

const shared = join(import.meta.dirname, "../../../shared");
const hiddenSize = 384;
const vocabSize = 8192;
const rank = 64;
const rows = 7;
const candidates = 16;

/** Whether the reference drafter's outputs are at hand. */
export const goldenIsThere: boolean = existsSync(join(shared, "golden/drafter.json"));

export const goldenNames: readonly string[] = ["copy", "story"];

/** The first block of one reference case, and what the reference's selector took. */
export interface GoldenBlock {
  readonly lattice: Lattice;
  readonly codebooks: Bf16Codebooks;
  readonly point: DraftPoint;
  readonly drafts: readonly number[];
  /** The candidates of the first row, ascending. */
  readonly firstRow: readonly number[];
}

interface GoldenCase {
  readonly output_ids: readonly number[];
  readonly rounds: readonly { readonly anchor_pos: number; readonly drafts: readonly number[] }[];
  readonly first_row_candidates: readonly number[];
}

/** Reads tensors of a file; closes it. */
async function tensorsOf(
  folder: string,
  file: string,
  names: readonly string[],
): Promise<Uint8Array[]> {
  const source = await (await openFolder(join(shared, folder))).open(file);
  try {
    const { tensors } = await readSafetensorsHeader(source);
    const entries = names.map((name) => tensors.find((tensor) => tensor.name === name));
    return await Promise.all(entries.map((entry) => source.read(entry!.offset, entry!.bytes)));
  } finally {
    await source.close();
  }
}

/** The reference's hidden rows and logits, made a lattice by the drafter's own projection in f64. */
export async function goldenBlock(name: string): Promise<GoldenBlock> {
  const text = readFileSync(join(shared, "golden/drafter.json"), "utf8");
  const { cases } = JSON.parse(text) as { cases: Record<string, GoldenCase> };
  const { rounds, output_ids, first_row_candidates } = cases[name]!;
  const [hiddenBytes, logitBytes] = await tensorsOf("golden", "drafter_trace.safetensors", [
    `${name}.hidden`,
    `${name}.logits`,
  ]);
  const [projectionBytes, predecessors, successors] = await tensorsOf(
    "models/nano-dflash2",
    "model.safetensors",
    ["hidden_projection.weight", "predecessor_codebook", "successor_codebook"].map(
      (tensor) => `candidate_selector.${tensor}`,
    ),
  );
  const hidden = widen(hiddenBytes!, "f32");
  const logits = widen(logitBytes!, "f32");
  const projection = widen(projectionBytes!, "bf16");
  const queries = new Float32Array(rows * rank);
  for (let at = 0; at < queries.length; at++) {
    // Row 0 is the anchor's, which predicts nothing.
    const row = 1 + Math.floor(at / rank);
    let sum = 0;
    for (let i = 0; i < hiddenSize; i++) {
      sum += projection[(at % rank) * hiddenSize + i]! * hidden[row * hiddenSize + i]!;
    }
    queries[at] = sum;
  }
  const { anchor_pos, drafts } = rounds[0]!;
  return {
    lattice: {
      rows: Array.from({ length: rows }, (_, row) =>
        orderCandidates(logits.subarray(row * vocabSize, (row + 1) * vocabSize), candidates, row),
      ),
      queries,
    },
    codebooks: new Bf16Codebooks(rank, predecessors!, successors!),
    point: {
      anchor: output_ids[0]!,
      position: anchor_pos + 1,
      sampling: { temperature: 0, topK: 0, topP: 1, minP: 0, seed: 0n },
    },
    drafts,
    firstRow: first_row_candidates,
  };
}

import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Backend, BackendOptions } from "../../backend/backend.ts";
import { readSafetensorsHeader } from "../../checkpoint/safetensors.ts";
import type { TensorEntry } from "../../checkpoint/safetensors-tensor.ts";
import type { ByteSource } from "../../checkpoint/source.ts";
import { openFolder } from "../../checkpoint/source-node.ts";
import { pagesFor } from "../../state/kv-pages.ts";
import type { Weights } from "../../weights/weights.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Folders that may hold reference outputs and the originals of the demo model. */
const folders = [join(root, "fixtures"), join(root, "..", "shared")];

/** The path of a reference file, such as `golden/nano_greedy.json`; null where no folder has it. */
export function findReference(path: string, extra: string | null): string | null {
  const all = extra ? [extra, ...folders] : folders;
  return all.map((folder) => join(folder, path)).find((file) => existsSync(file)) ?? null;
}

/** How far a backend may be from transformers. */
export interface Tolerances {
  readonly logits: number;
  /** Of hidden states, histories, keys and values whose largest entry is `peak`. */
  hidden(peak: number): number;
  /** The same of recurrent states. */
  state(peak: number): number;
  /** Tokens are compared as far as every margin is as large: below, either may be right. */
  readonly margin: number;
}

export const tolerancesOf = ({ info }: Backend): Tolerances =>
  info.activations === "f16" || info.kv === "f16"
    ? { logits: 3e-2, hidden: (peak) => 2e-2 * peak, state: (peak) => 2e-2 * peak, margin: 0.06 }
    : { logits: 2e-3, hidden: () => 1e-3, state: (peak) => 1e-4 * peak, margin: 0.01 };

/** KV pages of the longest reference case with its reply. */
export const goldenPages: number = pagesFor(512);

/** A backend for one stream that may draw every row. */
export function goldenSizes(weights: Weights, taps: readonly number[]): BackendOptions {
  return { weights, slots: 1, pages: goldenPages, rowsMax: 256, drawsMax: 256, taps };
}

export interface GreedyCase {
  readonly name: string;
  readonly prompt_ids: readonly number[];
  readonly greedy_ids: readonly number[];
  readonly margins: readonly number[];
}

export type GreedyRun = "bf16" | "q4" | "q8";

export function readGreedy(file: string): Record<GreedyRun, readonly GreedyCase[]> {
  return (JSON.parse(readFileSync(file, "utf8")) as { runs: Record<GreedyRun, GreedyCase[]> }).runs;
}

/** Tensors of one safetensors file, read when asked for. */
export class GoldenTensors implements AsyncDisposable {
  readonly #source: ByteSource;
  readonly #entries: ReadonlyMap<string, TensorEntry>;

  private constructor(source: ByteSource, entries: readonly TensorEntry[]) {
    this.#source = source;
    this.#entries = new Map(entries.map((entry) => [entry.name, entry]));
  }

  static async open(file: string): Promise<GoldenTensors> {
    const source = await (await openFolder(dirname(file))).open(basename(file));
    return new GoldenTensors(source, (await readSafetensorsHeader(source)).tensors);
  }

  async f32(name: string): Promise<Float32Array> {
    return new Float32Array((await this.#bytes(name)).buffer);
  }

  async i32(name: string): Promise<Int32Array> {
    return new Int32Array((await this.#bytes(name)).buffer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source.close();
  }

  async #bytes(name: string): Promise<Uint8Array<ArrayBuffer>> {
    const entry = this.#entries.get(name);
    if (!entry) throw new Error(`${this.#source.name} has no tensor ${name}`);
    return Uint8Array.from(await this.#source.read(entry.offset, entry.bytes));
  }
}

import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HubTime } from "./client.ts";
import { Hub } from "./hub-node.ts";
import type { HubName } from "./names.ts";
import { Pull } from "./pull-node.ts";
import type { HubSettings } from "./settings-node.ts";
import { filesBelow } from "./snapshot-files-node.ts";
import { blobName, TestHub } from "./test-hub.cases.ts";

/** Files by path. */
export type ModelFiles = ReadonlyMap<string, Uint8Array>;

export const text = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/** Bytes that differ by their seed, and at every place. */
export function someBytes(length: number, seed: number): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  });
}

export const shards: readonly string[] = [
  "model-00001-of-00002.safetensors",
  "model-00002-of-00002.safetensors",
];

/** What a pull reads of `modelFiles`. */
export const neededPaths: readonly string[] = [
  "chat_template.jinja",
  "config.json",
  "generation_config.json",
  ...shards,
  "model.safetensors.index.json",
  "tokenizer.json",
  "tokenizer_config.json",
];

/** A model of two shards, with much that nobody reads. Its tensors are none. */
export function modelFiles(seed = 1, shardBytes = 200_000): Map<string, Uint8Array> {
  const [first, second] = shards;
  return new Map([
    ["README.md", text("A model.")],
    ["config.json", text({ model_type: "qwen3_5_text" })],
    ["generation_config.json", text({ temperature: 0.7 })],
    ["model.safetensors.index.json", text({ weight_map: { a: first, b: second, c: first } })],
    [shards[0]!, someBytes(shardBytes, seed)],
    [shards[1]!, someBytes(shardBytes / 2, seed + 1)],
    ["model-00003-of-00003.safetensors", someBytes(1000, 3)],
    ["onnx/model.onnx", someBytes(1000, 4)],
    ["pytorch_model.bin", someBytes(1000, 5)],
    ["tokenizer.json", someBytes(50_000, 6)],
    ["tokenizer_config.json", text({})],
    ["chat_template.jinja", text("template")],
  ]);
}

/** Time that stands still: nobody waits, and no alarm rings. */
export const stillTime: HubTime = {
  setAlarm: () => () => {},
  wait: async (_, signal) => signal.throwIfAborted(),
};

/** A hub, and an empty cache, which is gone afterwards. */
export class HubBench implements AsyncDisposable {
  readonly server: TestHub;
  readonly cache: string;
  readonly never: AbortSignal = new AbortController().signal;

  private constructor(server: TestHub, cache: string) {
    this.server = server;
    this.cache = cache;
  }

  static async open(): Promise<HubBench> {
    const cache = await mkdtemp(join(tmpdir(), "deltafold-hub-"));
    return new HubBench(await TestHub.start(), cache);
  }

  hub(settings: Partial<HubSettings> = {}, time: HubTime = stillTime): Hub {
    const endpoint = new URL(this.server.url);
    const plain = { cache: this.cache, endpoint, token: null, offline: false, symlinks: true };
    return new Hub({ ...plain, ...settings }, time);
  }

  /** Pulls a model. @returns its folder */
  async pull(
    name: HubName,
    hub: Hub = this.hub(),
    signal: AbortSignal = this.never,
  ): Promise<string> {
    await using pull = await Pull.open(hub, name, signal);
    await pull.run({ onBytes() {}, onFault() {} });
    return pull.folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
    await rm(this.cache, { recursive: true });
  }
}

/** What is wrong with a model's part of a cache: whatever has a name must be whole, and lead somewhere. */
export async function faultsOf(
  hub: Hub,
  repo: string,
  known: readonly ModelFiles[],
): Promise<string[]> {
  const cache = hub.cacheOf(repo);
  const blobs = new Map(
    known.flatMap((files) => [...files].map(([path, bytes]) => [blobName(path, bytes), bytes])),
  );
  const faults: string[] = [];
  for (const name of await readdir(cache.blobs).catch(() => [])) {
    if (name.endsWith(".incomplete")) continue;
    const bytes = await readFile(join(cache.blobs, name));
    if (!blobs.get(name) || bytes.compare(blobs.get(name)!) !== 0) faults.push(`blob ${name}`);
  }
  for (const path of await filesBelow(cache.snapshots)) {
    const bytes = await readFile(path).catch(() => null);
    const name = path.slice(cache.snapshots.length + 42);
    const isKnown = known.some((files) => bytes?.compare(files.get(name) ?? someBytes(1, 0)) === 0);
    if (!isKnown) faults.push(`snapshot file ${path}`);
  }
  for (const path of await filesBelow(cache.refs)) {
    const commit = await readFile(path, "utf8");
    const names = await readdir(cache.snapshot(commit)).catch(() => []);
    if (names.length === 0) faults.push(`ref ${path}`);
  }
  return faults;
}

/** @module Opens checkpoints and engines in Node. */
import { basename, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Backend, BackendOptions } from "./backend/backend.ts";
import { ReferenceBackend } from "./backend/reference/reference.ts";
import { nodePlatform } from "./backend/wasm/platform-node.ts";
import { WasmBackend } from "./backend/wasm/wasm.ts";
import { type Checkpoint, openCheckpoint } from "./checkpoint/checkpoint.ts";
import { asFields, parseJsonObject } from "./checkpoint/json.ts";
import type { Folder } from "./checkpoint/source.ts";
import { openFolder } from "./checkpoint/source-node.ts";
import { Engine } from "./engine.ts";
import { CheckpointError, InputError } from "./errors.ts";
import {
  contextTokensDefault,
  pageRows,
  promptChunkRows,
  roundRowsMax,
  threadsMax,
} from "./limits.ts";
import type { SamplingDefaults } from "./sampling/params.ts";
import { ChatTemplate } from "./text/chat-template.ts";
import { Tokenizer } from "./text/tokenizer.ts";
import { weightsFromCheckpoint } from "./weights/from-checkpoint.ts";
import type { Weights } from "./weights/weights.ts";

export * from "./index.ts";

/** The model that comes with the package. */
export const embeddedModel = "nano";

export type BackendName = "webgpu" | "wasm" | "reference";
export type Activations = "f32" | "int8";

export interface BackendChoice {
  readonly backend: BackendName;
  /** Compute threads of the wasm backend. */
  readonly threads: number;
  readonly activations: Activations;
  /** Part of the name of the GPU adapter; null takes the first. */
  readonly adapter: string | null;
}

export interface OpenOptions extends Partial<BackendChoice> {
  readonly contextTokens?: number;
  /** Reply length when a request names none, cut to the room that is left. */
  readonly maxTokens?: number;
  /** Streams served at once. */
  readonly slots?: number;
  readonly sampling?: Partial<SamplingDefaults>;
  readonly thinking?: boolean | null;
  readonly onProgress?: (done: number, total: number) => void;
}

/** The folder of a model: an embedded model's name, or a path. */
export function modelFolder(model: string): string {
  if (model !== embeddedModel) return resolve(model);
  return fileURLToPath(new URL(`../models/${model}`, import.meta.url));
}

/** Opens a backend over any weights. */
export async function openBackend(
  options: BackendOptions,
  choice: Partial<BackendChoice> = {},
): Promise<Backend> {
  const memoryBytesMax = process.availableMemory();
  if (choice.backend === "reference") {
    return await ReferenceBackend.open({ ...options, memoryBytesMax });
  }
  if (choice.backend === "webgpu") return await openWebgpu(options, choice.adapter ?? null, false);
  return await WasmBackend.open({
    ...options,
    memoryBytesMax,
    platform: nodePlatform,
    threads: choice.threads ?? nodePlatform.threads,
    activations: choice.activations ?? "f32",
  });
}

/** Opens the GPU over synthetic weights, whose values are made on the device. */
export const openSyntheticGpu = (
  options: BackendOptions,
  adapter: string | null,
): Promise<Backend> => openWebgpu(options, adapter, true);

/** Dawn is large and optional: it is loaded by those who ask for it. */
async function openWebgpu(
  options: BackendOptions,
  adapter: string | null,
  synthetic: boolean,
): Promise<Backend> {
  const { WebgpuBackend } = await import("./backend/webgpu/webgpu.ts");
  const { nodeGpuPlatform: platform } = await import("./backend/webgpu/platform-node.ts");
  return await WebgpuBackend.open({ ...options, platform, adapter, synthetic });
}

/**
 * Loads a model: its checkpoint, tokenizer, template and backend.
 * @throws CheckpointError, InputError, MemoryError, BackendError
 */
export async function openEngine(model: string, options: OpenOptions = {}): Promise<Engine> {
  checkCount("slots", options.slots ?? 1, roundRowsMax);
  checkCount("threads", options.threads ?? 1, threadsMax);
  const path = modelFolder(model);
  const folder = await openFolder(path);
  await using checkpoint = await openCheckpoint(folder);
  const { config } = checkpoint;
  const contextTokens = contextOf(options.contextTokens, checkpoint);
  const tokenizer = await openTokenizer(folder, config.shape.vocabSize);
  const template = await openTemplate(folder);
  const weights = await weightsFromCheckpoint(checkpoint);
  const backend = await openBackend(sizes(weights, contextTokens, options), options);
  const { generation } = config;
  return new Engine({
    backend,
    tokenizer,
    template,
    model: basename(path),
    eosIds: config.eosIds,
    contextTokens,
    ...(options.maxTokens !== undefined && { maxTokens: options.maxTokens }),
    thinking: options.thinking ?? null,
    sampling: {
      temperature: options.sampling?.temperature ?? generation.temperature ?? 1,
      topK: options.sampling?.topK ?? generation.topK ?? 0,
      topP: options.sampling?.topP ?? generation.topP ?? 1,
      minP: options.sampling?.minP ?? generation.minP ?? 0,
    },
  });
}

function checkCount(name: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= max) return;
  throw new InputError(`${name} must be a whole number from 1 to ${max}, not ${value}.`);
}

function sizes(weights: Weights, contextTokens: number, options: OpenOptions): BackendOptions {
  const slots = options.slots ?? 1;
  return {
    weights,
    slots,
    pages: slots * Math.ceil(contextTokens / pageRows),
    rowsMax: Math.max(promptChunkRows, roundRowsMax),
    drawsMax: Math.max(slots, 1),
    taps: [],
    ...(options.onProgress && { onProgress: options.onProgress }),
  };
}

function contextOf(asked: number | undefined, checkpoint: Checkpoint): number {
  const { contextMax } = checkpoint.config.shape;
  if (asked === undefined) return Math.min(contextMax, contextTokensDefault);
  if (Number.isSafeInteger(asked) && asked > 0 && asked <= contextMax) return asked;
  throw new InputError(
    `The context must be 1 to ${contextMax} tokens for this model, not ${asked}.`,
  );
}

async function openTokenizer(folder: Folder, vocabSize: number): Promise<Tokenizer> {
  const [file, configFile] = ["tokenizer.json", "tokenizer_config.json"];
  if (!(await folder.has(file))) throw new CheckpointError(folder.name, `has no ${file}`);
  const config = (await folder.has(configFile)) ? await folder.text(configFile) : null;
  const name = `${folder.name}/${file}`;
  const tokenizer = Tokenizer.fromJson(await folder.text(file), config, name);
  if (tokenizer.vocabSize <= vocabSize) return tokenizer;
  throw new CheckpointError(
    name,
    `has ids up to ${tokenizer.vocabSize - 1}, but the model's vocab_size is ${vocabSize}`,
  );
}

/** chat_template.jinja, or the template inside tokenizer_config.json; null where there is neither. */
export async function openTemplate(folder: Folder): Promise<ChatTemplate | null> {
  const file = "chat_template.jinja";
  if (await folder.has(file)) {
    return ChatTemplate.fromSource(await folder.text(file), `${folder.name}/${file}`);
  }
  const configFile = "tokenizer_config.json";
  if (!(await folder.has(configFile))) return null;
  const name = `${folder.name}/${configFile}`;
  const source = defaultTemplate(parseJsonObject(name, await folder.text(configFile)));
  return source === null ? null : ChatTemplate.fromSource(source, name);
}

/** A template's text; of a list of named ones, the one called default. */
function defaultTemplate(config: ReadonlyMap<string, unknown>): string | null {
  const field = config.get("chat_template");
  const named = Array.isArray(field) ? field.map(asFields) : [];
  const chosen = named.find((entry) => entry?.get("name") === "default")?.get("template") ?? field;
  return typeof chosen === "string" ? chosen : null;
}

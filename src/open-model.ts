/** What the entries share: a checkpoint folder and a way to open backends make an engine. */
import type { Activations, Backend, BackendOptions } from "./backend/backend.ts";
import { type Checkpoint, openCheckpoint } from "./checkpoint/checkpoint.ts";
import { asFields, parseJsonObject } from "./checkpoint/json.ts";
import type { Folder } from "./checkpoint/source.ts";
import { Engine } from "./engine.ts";
import { CheckpointError, InputError } from "./errors.ts";
import { contextTokensDefault, pageRows, promptChunkRows, roundRowsMax } from "./limits.ts";
import type { SamplingDefaults } from "./sampling/params.ts";
import { ChatTemplate } from "./text/chat-template.ts";
import { Tokenizer } from "./text/tokenizer.ts";
import { weightsFromCheckpoint } from "./weights/from-checkpoint.ts";
import type { Weights } from "./weights/weights.ts";

export type { Activations };

/** What a GPU's matmuls read; "auto" is f16 where it has a matrix unit for it, else f32. */
export type GpuActivations = "auto" | "f32" | "f16";

export const gpuActivations = (activations: Activations | undefined): GpuActivations =>
  activations === "f32" || activations === "f16" ? activations : "auto";

export type KvType = "f32" | "f16";

/**
 * Refuses what only another backend computes with, rather than take something else.
 * @param backend `auto` has what every backend has, so that no machine makes a difference
 * @throws InputError naming the option and its backend
 */
export function checkPrecision(
  backend: "auto" | "webgpu" | "wasm" | "reference",
  { activations, kv }: { readonly activations?: Activations; readonly kv?: KvType },
): void {
  const check = (option: string, owner: typeof backend) => {
    if (backend === owner) return;
    throw new InputError(`${option} goes with the backend ${owner}, not with ${backend}.`);
  };
  if (activations === "int8") check("activations int8", "wasm");
  if (activations === "f16") check("activations f16", "webgpu");
  if (kv === "f16") check("kv f16", "webgpu");
}

/** What every entry lets its callers say. */
export interface ModelOptions {
  readonly contextTokens?: number;
  /** Reply length when a request names none, cut to the room that is left. */
  readonly maxTokens?: number;
  /** Streams served at once. */
  readonly slots?: number;
  readonly sampling?: Partial<SamplingDefaults>;
  readonly thinking?: boolean | null;
  readonly onProgress?: (done: number, total: number) => void;
}

/**
 * Loads a model: its checkpoint, tokenizer, template and backend.
 * @param model the name that the engine gives it
 * @throws CheckpointError, InputError, and what `openBackend` throws
 */
export async function openModel(
  folder: Folder,
  model: string,
  options: ModelOptions,
  openBackend: (sizes: BackendOptions) => Promise<Backend>,
): Promise<Engine> {
  checkCount("slots", options.slots ?? 1, roundRowsMax);
  await using checkpoint = await openCheckpoint(folder);
  const { config } = checkpoint;
  const contextTokens = contextOf(options.contextTokens, checkpoint);
  const tokenizer = await openTokenizer(folder, config.shape.vocabSize);
  const template = await openTemplate(folder);
  const weights = await weightsFromCheckpoint(checkpoint);
  const backend = await openBackend(sizes(weights, contextTokens, options));
  const { generation } = config;
  return new Engine({
    backend,
    openAgain: () => openAgain(folder, weights.fingerprint, contextTokens, options, openBackend),
    tokenizer,
    template,
    model,
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

/**
 * Reads the weights again, for a backend of the same sizes as the one that was lost.
 * @param fingerprint of the weights that were loaded: shape, headers, and the start of each tensor
 * @throws CheckpointError where the folder's are others by now
 */
async function openAgain(
  folder: Folder,
  fingerprint: string,
  contextTokens: number,
  options: ModelOptions,
  openBackend: (sizes: BackendOptions) => Promise<Backend>,
): Promise<Backend> {
  await using checkpoint = await openCheckpoint(folder);
  const weights = await weightsFromCheckpoint(checkpoint);
  if (weights.fingerprint !== fingerprint) {
    throw new CheckpointError(folder.name, "is another model than the one that was loaded");
  }
  // Whoever watched the first loading has long gone on.
  const { onProgress: _, ...quiet } = options;
  return await openBackend(sizes(weights, contextTokens, quiet));
}

/** @throws InputError unless `value` is a whole number from 1 to `max` */
export function checkCount(name: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= max) return;
  throw new InputError(`${name} must be a whole number from 1 to ${max}, not ${value}.`);
}

function sizes(weights: Weights, contextTokens: number, options: ModelOptions): BackendOptions {
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

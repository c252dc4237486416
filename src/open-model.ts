/** What the entries share: a checkpoint folder and a way to open backends make an engine. */
import type { Activations, Backend, BackendOptions, DrafterOptions } from "./backend/backend.ts";
import { type Checkpoint, openCheckpoint } from "./checkpoint/checkpoint.ts";
import type { Folder } from "./checkpoint/source.ts";
import { systemClock } from "./clock.ts";
import { type CostStore, storedCosts } from "./draft/cost-store.ts";
import { costTable } from "./draft/cost-table.ts";
import type { DraftingSource } from "./draft/drafting.ts";
import { streamDrafting } from "./draft/stream-drafting.ts";
import { Engine } from "./engine.ts";
import { CheckpointError, InputError, MemoryError } from "./errors.ts";
import {
  contextTokensDefault,
  pageRows,
  promptChunkRows,
  roundRowsMax,
  windowRowsMax,
} from "./limits.ts";
import {
  type DrafterPlace,
  type DrafterSettings,
  drafterBits,
  type OpenDrafter,
  openDrafterFor,
  withoutDrafter,
} from "./open-drafter.ts";
import { openTemplate, openTokenizer } from "./open-text.ts";
import { windowCosts } from "./rounds/window-costs.ts";
import { noAdjustments } from "./sampling/adjust.ts";
import type { SamplingDefaults } from "./sampling/params.ts";
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
export interface ModelOptions extends DrafterSettings {
  readonly contextTokens?: number;
  /** Reply length when a request names none, cut to the room that is left. */
  readonly maxTokens?: number;
  /** Streams served at once. */
  readonly slots?: number;
  readonly sampling?: Partial<SamplingDefaults>;
  readonly thinking?: boolean | null;
  /** False: replies are decoded serially. They are the same. */
  readonly drafts?: boolean;
  /** The most nodes of the trees that the drafter proposes, up to 15; 0, unless said: chains. */
  readonly draftTree?: number;
  readonly onProgress?: (done: number, total: number) => void;
  /** Hears of what is left out, the engine serving all the same. */
  readonly onWarning?: (message: string) => void;
}

/** What the entry of a platform brings. */
export interface ModelParts {
  readonly folder: Folder;
  /** The name that the engine gives the model. */
  readonly model: string;
  readonly drafter: DrafterPlace | null;
  /** Where the costs of rounds are kept between starts; null: nowhere. */
  readonly costs: CostStore | null;
  openBackend(sizes: BackendOptions): Promise<Backend>;
}

/**
 * Loads a model: its checkpoint, tokenizer, template, drafter and backend.
 * @throws CheckpointError, InputError, and what `openBackend` throws
 */
export async function openModel(parts: ModelParts, options: ModelOptions): Promise<Engine> {
  const { folder, model } = parts;
  checkCount("slots", options.slots ?? 1, roundRowsMax);
  checkDrafts(options);
  await using checkpoint = await openCheckpoint(folder);
  const { config } = checkpoint;
  const contextTokens = contextOf(options.contextTokens, checkpoint);
  const tokenizer = await openTokenizer(folder, config.shape.vocabSize);
  const template = await openTemplate(folder);
  const weights = await weightsFromCheckpoint(checkpoint);
  await using found = await drafterOf(parts, weights, options);
  const { backend, drafter } = await openFitting(parts, weights, found, contextTokens, options);
  const drafting = await draftingOf(parts, backend, weights, drafter, options);
  const prints = [weights.fingerprint, drafter?.options.weights.fingerprint];
  const { generation } = config;
  return new Engine({
    backend,
    openAgain: () => openAgain(parts, prints, contextTokens, options),
    ...(drafting && { drafting }),
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
      adjust: options.sampling?.adjust ?? {
        ...noAdjustments,
        repetitionPenalty: generation.repetitionPenalty ?? 1,
      },
    },
  });
}

/** @throws InputError for a setting out of range, as the commands refuse it too */
function checkDrafts({ draftTree = 0, draftVocabulary, drafterBits: bits }: ModelOptions): void {
  if (draftTree !== 0) checkCount("draftTree", draftTree, windowRowsMax - 1);
  if (draftVocabulary !== undefined) {
    checkCount("draftVocabulary", draftVocabulary, Number.MAX_SAFE_INTEGER);
  }
  if (bits === undefined || drafterBits.includes(bits)) return;
  throw new InputError(`drafterBits must be ${drafterBits.join(" or ")}, not ${bits}.`);
}

/** The drafter of a model's place, where there is one and drafts are wanted. */
async function drafterOf(
  { drafter }: ModelParts,
  { shape }: Weights,
  options: ModelOptions,
): Promise<OpenDrafter | null> {
  if (options.drafts === false || !drafter) return null;
  return await openDrafterFor(drafter, shape, options, options.onWarning ?? (() => {}));
}

/** A backend with the drafter, or without one that nobody asked for and that doesn't fit beside the model. */
async function openFitting(
  parts: ModelParts,
  weights: Weights,
  drafter: OpenDrafter | null,
  contextTokens: number,
  options: ModelOptions,
): Promise<{ backend: Backend; drafter: OpenDrafter | null }> {
  const open = (drafting: DrafterOptions | null) =>
    parts.openBackend(sizes(weights, drafting, contextTokens, options));
  try {
    return { backend: await open(drafter?.options ?? null), drafter };
  } catch (error) {
    if (!drafter || parts.drafter?.asked || !(error instanceof MemoryError)) throw error;
    options.onWarning?.(withoutDrafter(error));
    return { backend: await open(null), drafter: null };
  }
}

/** What proposes for streams; null where drafts are not wanted. Measures the costs of rounds. */
async function draftingOf(
  { costs: store }: ModelParts,
  backend: Backend,
  weights: Weights,
  drafter: OpenDrafter | null,
  { drafts = true, draftTree = 0 }: ModelOptions,
): Promise<DraftingSource | null> {
  if (!drafts) return null;
  const { device, arithmetic, kv = "f32", drafter: shape } = backend.info;
  const prints = [
    weights.fingerprint,
    drafter?.options.weights.fingerprint,
    drafter?.options.vocabulary,
  ];
  const of = { device: `${device}; ${arithmetic}; ${kv}`, model: JSON.stringify(prints) };
  try {
    const costs = await storedCosts(store, of, () => windowCosts(backend, systemClock));
    const codebooks = drafter?.codebooks ?? null;
    return streamDrafting({
      model: shape && { shape, codebooks, treeNodes: draftTree },
      costs: costs && costTable(costs),
    });
  } catch (error) {
    await backend[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Reads the weights again, for a backend of the same sizes as the one that was lost.
 * @param prints fingerprints of what was loaded: shape, headers, and the start of each tensor
 * @throws CheckpointError where the folder's are others by now
 */
async function openAgain(
  parts: ModelParts,
  prints: readonly (string | undefined)[],
  contextTokens: number,
  options: ModelOptions,
): Promise<Backend> {
  await using checkpoint = await openCheckpoint(parts.folder);
  const weights = await weightsFromCheckpoint(checkpoint);
  // One that didn't fit then is left out again.
  await using drafter = prints[1] === undefined ? null : await drafterOf(parts, weights, options);
  const found = [weights.fingerprint, drafter?.options.weights.fingerprint];
  if (found.some((print, index) => print !== prints[index])) {
    const which = found[0] === prints[0] ? "has another drafter" : "is another model";
    throw new CheckpointError(parts.folder.name, `${which} than the one that was loaded`);
  }
  // Whoever watched the first loading has long gone on.
  const { onProgress: _, ...quiet } = options;
  return await parts.openBackend(sizes(weights, drafter?.options ?? null, contextTokens, quiet));
}

/** @throws InputError unless `value` is a whole number from 1 to `max` */
export function checkCount(name: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= max) return;
  throw new InputError(`${name} must be a whole number from 1 to ${max}, not ${value}.`);
}

function sizes(
  weights: Weights,
  drafter: DrafterOptions | null,
  contextTokens: number,
  options: ModelOptions,
): BackendOptions {
  const { slots = 1, drafts = true } = options;
  return {
    weights,
    drafter,
    slots,
    pages: slots * Math.ceil(contextTokens / pageRows),
    rowsMax: Math.max(promptChunkRows, roundRowsMax),
    drawsMax: drafts ? Math.min(slots * windowRowsMax, roundRowsMax) : slots,
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

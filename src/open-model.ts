/** What the entries share: a checkpoint folder and a way to open backends make an engine. */
import type { Activations, Backend, BackendOptions, BackendPlanner } from "./backend/backend.ts";
import { identityOf } from "./backend/identity.ts";
import { openCheckpoint } from "./checkpoint/checkpoint.ts";
import type { GenerationDefaults } from "./checkpoint/config-generation.ts";
import type { Folder } from "./checkpoint/source.ts";
import { systemClock } from "./clock.ts";
import { type CostStore, storedCosts } from "./draft/cost-store.ts";
import type { DraftingSource } from "./draft/drafting.ts";
import { streamDrafting } from "./draft/stream-drafting.ts";
import { Engine, type EngineIdentity } from "./engine.ts";
import { CheckpointError, InputError, InvariantError, MemoryError } from "./errors.ts";
import { roundRowsMax, spillFreeBytesMin, windowRowsMax } from "./limits.ts";
import {
  type DrafterPlace,
  type DrafterSettings,
  drafterBits,
  type OpenDrafter,
  openDrafterFor,
  withoutDrafter,
} from "./open-drafter.ts";
import { openIdentity } from "./open-identity.ts";
import { choosing, roomBytesOf } from "./open-plan.ts";
import {
  backendSizes,
  type KvType,
  type OpenSizes,
  type SizeOptions,
  sizesToTry,
} from "./open-sizes.ts";
import { openTemplate, openTokenizer } from "./open-text.ts";
import { windowCosts } from "./rounds/window-costs.ts";
import { noAdjustments } from "./sampling/adjust.ts";
import type { SamplingDefaults } from "./sampling/params.ts";
import { numericsProbe } from "./state/numerics-probe.ts";
import type { SpillFiles } from "./state/spill-files.ts";
import type { SpillIdentity } from "./state/spill-header.ts";
import { SpillStore } from "./state/spill-store.ts";
import { weightsFromCheckpoint } from "./weights/from-checkpoint.ts";
import { withKnownTokens } from "./weights/known-tokens.ts";
import type { Weights } from "./weights/weights.ts";

export type { Activations, KvType };

/** What a GPU's matmuls read; "auto" is f16 where it has a matrix unit for it, else f32. */
export type GpuActivations = "auto" | "f32" | "f16";

export const gpuActivations = (activations: Activations | undefined): GpuActivations =>
  activations === "f32" || activations === "f16" ? activations : "auto";

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
export interface ModelOptions extends DrafterSettings, SizeOptions {
  /** Reply length when a request names none, cut to the room that is left. */
  readonly maxTokens?: number;
  /** Requests that may wait for a slot; 64 unless said. */
  readonly queueMax?: number;
  /** The share of the time that replies have while prompts are computed: 0.25 unless said. */
  readonly decodeShare?: number;
  /** What cached prompts may take on disk once memory is short of room; 0, unless said: nothing. */
  readonly spillBytes?: number;
  readonly sampling?: Partial<SamplingDefaults>;
  readonly thinking?: boolean | null;
  /** Whether `Engine.info` tells the engine's identity, for which a short prompt is computed. */
  readonly identify?: boolean;
  /** False: replies are decoded serially. They are the same. */
  readonly drafts?: boolean;
  /** The most nodes of the trees that the drafter proposes, up to 15; 0, unless said: chains. */
  readonly draftTree?: number;
  readonly onProgress?: (done: number, total: number) => void;
  /** Hears of what is left out, the engine serving all the same. */
  readonly onWarning?: (message: string) => void;
}

/** A place for spilled prompts. */
export interface SpillPlace {
  readonly files: (identity: SpillIdentity) => SpillFiles;
  /** Names the build: another's states may be others. */
  readonly build: string;
}

/** What the entry of a platform brings. */
export interface ModelParts {
  readonly folder: Folder;
  /** The name that the engine gives the model. */
  readonly model: string;
  readonly drafter: DrafterPlace | null;
  /** Where the costs of rounds are kept between starts; null: nowhere. */
  readonly costs: CostStore | null;
  /** Where cached prompts are spilled to; null: nowhere. */
  readonly spill: SpillPlace | null;
  /** What cached prompts may take, unless the user says. */
  readonly promptCacheBytes: number;
  /** What keys and values may take, unless the user says; 4 GiB where absent. */
  readonly kvBytes?: number;
  /** Plans what `openBackend` opens; without one, only opening a backend tells whether it fits. */
  readonly planner?: () => Promise<BackendPlanner | null>;
  openBackend(sizes: BackendOptions): Promise<Backend>;
}

/**
 * Loads a model: its checkpoint, tokenizer, template, drafter and backend.
 * @throws CheckpointError, InputError, and what `openBackend` throws
 */
export async function openModel(parts: ModelParts, options: ModelOptions): Promise<Engine> {
  const { folder, model } = parts;
  checkServing(options);
  checkDrafts(options);
  await using checkpoint = await openCheckpoint(folder);
  const { config } = checkpoint;
  checkContext(options.contextTokens, config.shape.contextMax);
  const tokenizer = await openTokenizer(folder, config.shape.vocabSize);
  const template = await openTemplate(folder);
  const weights = withKnownTokens(await weightsFromCheckpoint(checkpoint), tokenizer.vocabSize);
  await using found = await drafterOf(parts, weights, options);
  const opened = await openFitting(parts, weights, found, options);
  const { backend, drafter, sizes } = opened;
  const sampling = samplingOf(config.generation, options);
  const identity = await identityFor(folder, weights, backend, sampling, options);
  const drafting = await draftingOf(parts, backend, weights, drafter, options);
  const prints = [weights.fingerprint, drafter?.options.weights.fingerprint];
  const spill = await spillOf(parts, opened, prints, options);
  return new Engine({
    backend,
    openAgain: () => openAgain(parts, prints, weights.shape.vocabSize, sizes, options),
    cache: { bytesMax: sizes.promptCacheBytes, spill },
    ...(options.queueMax !== undefined && { queueMax: options.queueMax }),
    ...(options.decodeShare !== undefined && { decodeShare: options.decodeShare }),
    ...(drafting && { drafting }),
    tokenizer,
    template,
    model,
    eosIds: config.eosIds,
    contextTokens: sizes.contextTokens,
    ...(options.maxTokens !== undefined && { maxTokens: options.maxTokens }),
    thinking: options.thinking ?? null,
    sampling,
    ...(identity && { identity }),
  });
}

/** How replies are drawn where neither a request nor the options say. */
const samplingOf = (
  generation: GenerationDefaults,
  { sampling }: ModelOptions,
): SamplingDefaults => ({
  temperature: sampling?.temperature ?? generation.temperature ?? 1,
  topK: sampling?.topK ?? generation.topK ?? 0,
  topP: sampling?.topP ?? generation.topP ?? 1,
  minP: sampling?.minP ?? generation.minP ?? 0,
  adjust: sampling?.adjust ?? {
    ...noAdjustments,
    repetitionPenalty: generation.repetitionPenalty ?? 1,
  },
});

/** Null unless the options ask for it. */
async function identityFor(
  folder: Folder,
  weights: Weights,
  backend: Backend,
  sampling: SamplingDefaults,
  { identify = false, thinking = null, maxTokens }: ModelOptions,
): Promise<EngineIdentity | null> {
  if (!identify) return null;
  try {
    const settings = [sampling, thinking, maxTokens ?? null];
    return await openIdentity(folder, weights, backend, settings);
  } catch (error) {
    await backend[Symbol.asyncDispose]();
    throw error;
  }
}

/** @throws InputError for a setting out of range */
function checkServing({ parallel = "auto", queueMax = 0, decodeShare = 0 }: ModelOptions): void {
  if (parallel !== "auto") checkCount("parallel", parallel, roundRowsMax);
  if (queueMax !== 0) checkCount("queueMax", queueMax, Number.MAX_SAFE_INTEGER);
  if (decodeShare >= 0 && decodeShare < 1) return;
  throw new InputError(`decodeShare must be from 0 to below 1, not ${decodeShare}.`);
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
  weights: Weights,
  options: ModelOptions,
): Promise<OpenDrafter | null> {
  if (options.drafts === false || !drafter) return null;
  return await openDrafterFor(drafter, weights, options, options.onWarning ?? (() => {}));
}

/** A backend, and what it was opened with. */
interface Opened {
  readonly backend: Backend;
  readonly drafter: OpenDrafter | null;
  readonly sizes: OpenSizes;
}

/**
 * The largest backend that fits, with the drafter, or without one that nobody asked for.
 * @throws MemoryError of the smallest
 */
async function openFitting(
  parts: ModelParts,
  weights: Weights,
  drafter: OpenDrafter | null,
  options: ModelOptions,
): Promise<Opened> {
  const { onProgress } = options;
  const planner = (await parts.planner?.()) ?? null;
  const roomBytes = roomBytesOf(planner, options);
  const attempt = async (using: OpenDrafter | null): Promise<Opened> => {
    const asked = { weights, drafter: using?.options ?? null, options };
    const { sizing, backendOf } = choosing(asked, parts, planner, roomBytes);
    let refused: unknown = new InvariantError("no sizes to try");
    for await (const sizes of sizesToTry(options, sizing)) {
      try {
        const watched = { ...backendOf(sizes), ...(onProgress && { onProgress }) };
        return { backend: await parts.openBackend(watched), drafter: using, sizes };
      } catch (error) {
        if (!(error instanceof MemoryError)) throw error;
        refused = error;
      }
    }
    throw refused;
  };
  try {
    return await attempt(drafter);
  } catch (error) {
    if (!drafter || parts.drafter?.asked || !(error instanceof MemoryError)) throw error;
    options.onWarning?.(withoutDrafter(error));
    return await attempt(null);
  }
}

/** Where evicted states go on being known; null: nowhere. */
async function spillOf(
  { spill }: ModelParts,
  { backend, sizes }: Opened,
  prints: readonly (string | undefined)[],
  { spillBytes: maxBytes = 0, onWarning = () => {} }: ModelOptions,
): Promise<SpillStore | null> {
  if (!spill || maxBytes === 0) return null;
  if (sizes.promptCacheBytes === 0) {
    onWarning("Nothing is spilled: there is no prompt cache from which it would be.");
    return null;
  }
  try {
    const identity = {
      model: JSON.stringify(prints),
      backend: identityOf(backend.info),
      build: spill.build,
      probe: await numericsProbe(backend),
    };
    const limits = { maxBytes, minFreeBytes: spillFreeBytesMin, onWarning };
    return await SpillStore.open(spill.files(identity), identity, limits);
  } catch (error) {
    await backend[Symbol.asyncDispose]();
    throw error;
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
  const { drafter: shape } = backend.info;
  const prints = [
    weights.fingerprint,
    drafter?.options.weights.fingerprint,
    drafter?.options.vocabulary,
  ];
  const of = { device: identityOf(backend.info), model: JSON.stringify(prints) };
  try {
    const costs = await storedCosts(store, of, () => windowCosts(backend, systemClock));
    const codebooks = drafter?.codebooks ?? null;
    return streamDrafting({
      model: shape && { shape, codebooks, treeNodes: draftTree },
      costs,
    });
  } catch (error) {
    await backend[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Reads the weights again, for a backend of the same sizes as the one that was lost.
 * @param prints fingerprints of what was loaded: shape, headers, and the start of each tensor
 * @param tokens that the head gives logits of
 * @throws CheckpointError where the folder's are others by now
 */
async function openAgain(
  parts: ModelParts,
  prints: readonly (string | undefined)[],
  tokens: number,
  sizes: OpenSizes,
  options: ModelOptions,
): Promise<Backend> {
  await using checkpoint = await openCheckpoint(parts.folder);
  const weights = withKnownTokens(await weightsFromCheckpoint(checkpoint), tokens);
  // One that didn't fit then is left out again.
  await using drafter = prints[1] === undefined ? null : await drafterOf(parts, weights, options);
  const found = [weights.fingerprint, drafter?.options.weights.fingerprint];
  if (found.some((print, index) => print !== prints[index])) {
    const which = found[0] === prints[0] ? "has another drafter" : "is another model";
    throw new CheckpointError(parts.folder.name, `${which} than the one that was loaded`);
  }
  const { drafts = true } = options;
  return await parts.openBackend(backendSizes(weights, drafter?.options ?? null, sizes, drafts));
}

/** @throws InputError unless `value` is a whole number from 1 to `max` */
export function checkCount(name: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= max) return;
  throw new InputError(`${name} must be a whole number from 1 to ${max}, not ${value}.`);
}

/** @throws InputError for a context that the model doesn't support */
export function checkContext(asked: number | undefined, contextMax: number): void {
  if (asked === undefined) return;
  if (Number.isSafeInteger(asked) && asked > 0 && asked <= contextMax) return;
  throw new InputError(
    `The context must be 1 to ${contextMax} tokens for this model, not ${asked}.`,
  );
}

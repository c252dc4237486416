import { sumOf } from "../../backend/memory-use.ts";
import { BackendError, InputError } from "../../errors.ts";
import { namedDrafter, namedShape } from "../../model/released-shapes.ts";
import {
  type BackendName,
  type ModelPlan,
  type OpenOptions,
  planEngine,
  planWeights,
} from "../../node.ts";
import { randomWeights } from "../../weights/random.ts";
import { randomDrafterWeights } from "../../weights/random-drafter.ts";
import type { AffineBits, Weights } from "../../weights/weights.ts";
import { drafterHere, findHere } from "../pull/find.ts";

/** A model's name or folder, or a released size. */
export type PlanSubject =
  | { readonly model: string }
  | { readonly shape: string; readonly bits: AffineBits };

/** What `plan --json` prints; sizes are in bytes. */
export interface PlanReport {
  readonly model: string;
  /** Of a released size; else as stored. */
  readonly bits: number | null;
  readonly plans: readonly BackendPlanReport[];
}

/** Where a model could be opened. */
export type BackendPlanReport = MissingBackend | FoundPlan;

interface MissingBackend {
  readonly backend: string;
  /** Why there is no such backend here. */
  readonly missing: string;
}

/** A model on a backend. */
export interface FoundPlan {
  readonly backend: string;
  readonly device: string;
  /** All tensors as stored, the drafter's not among them; and of these, the matrices that every token reads. */
  readonly stored_bytes: number;
  readonly read_bytes_per_token: number;
  /** The longest context that the model supports. */
  readonly context_max: number;
  readonly context_tokens: number;
  /** What the context is unless it is asked for: the most that fit. Null where none does. */
  readonly context_default: number | null;
  /** Why that isn't more; null where the model supports no more, or nothing is known against more. */
  readonly context_limit: string | null;
  readonly streams: number;
  /** Of 64 tokens. */
  readonly pages: number;
  readonly memory: {
    /** On the device, as kernels read them; with the drafter's share, as all of these. */
    readonly weights: number;
    readonly states: number;
    readonly kv: number;
    readonly workspace: number;
    /** What cached prompts take beside their pages, at most. */
    readonly prompt_cache: number;
    readonly total: number;
    /** What there is for all this; null: nobody knows. */
    readonly available: number | null;
  };
  /** What of the memory is the drafter's; null without one. */
  readonly drafter: {
    readonly weights: number;
    readonly states: number;
    readonly kv: number;
    readonly workspace: number;
  } | null;
  readonly stream_bytes: number;
  readonly kv_bytes_per_token: number;
  /** Whether nothing is known against it, and what is. */
  readonly fits: boolean;
  readonly refusal: string | null;
}

/**
 * Plans a model where it could be opened.
 * @param backend auto: on the CPU and on the GPU
 * @throws CheckpointError, InputError; BackendError where the backend that was asked for isn't there
 */
export async function planReport(
  subject: PlanSubject,
  options: OpenOptions,
  backend: "auto" | BackendName,
): Promise<PlanReport> {
  const names: BackendName[] = backend === "auto" ? ["wasm", "webgpu"] : [backend];
  const source = await sourceOf(subject, options);
  const plans: BackendPlanReport[] = [];
  for (const name of names) {
    try {
      plans.push(backendReport(name, await source.plan({ ...options, backend: name })));
    } catch (error) {
      if (backend !== "auto" || !(error instanceof BackendError)) throw error;
      plans.push({ backend: name, missing: error.message });
    }
  }
  return { ...source.named, plans };
}

interface PlanSource {
  readonly named: { readonly model: string; readonly bits: number | null };
  plan(options: OpenOptions): Promise<ModelPlan>;
}

async function sourceOf(subject: PlanSubject, options: OpenOptions): Promise<PlanSource> {
  if ("model" in subject) {
    const found = await findHere(subject.model);
    const drafter = await drafterHere(found, options);
    return {
      named: { model: found.name, bits: null },
      plan: (asked) => planEngine(found.folder, { ...asked, ...drafter }),
    };
  }
  const { shape: name, bits } = subject;
  const shape = namedShape(name)!;
  const weights = randomWeights(shape, { seed: 1, bits });
  const drafter = drafterOf(weights, options);
  return {
    named: { model: name, bits },
    plan: (asked) => planWeights(weights, drafter, asked),
  };
}

/** @throws InputError for a drafter that no released size has */
function drafterOf({ shape }: Weights, { drafts = true, drafter, drafterBits = 4 }: OpenOptions) {
  if (drafter !== undefined && !["auto", "none", "dflash2"].includes(drafter)) {
    throw new InputError(
      `With --shape, --drafter is none or dflash2, not ${JSON.stringify(drafter)}.`,
    );
  }
  if (!drafts || drafter !== "dflash2") return null;
  const bits = drafterBits === 0 ? "bf16" : drafterBits;
  return { weights: randomDrafterWeights(namedDrafter(shape), { seed: 1, bits }) };
}

function backendReport(backend: string, plan: ModelPlan): FoundPlan {
  const { sizes, memory, drafter, refusal } = plan;
  return {
    backend,
    device: plan.device,
    stored_bytes: plan.storedBytes,
    read_bytes_per_token: plan.readBytes,
    context_max: plan.contextMax,
    context_tokens: sizes.contextTokens,
    context_default: plan.contextDefault,
    context_limit: plan.contextLimit,
    streams: sizes.slots,
    pages: sizes.pages,
    memory: {
      ...partsOf(memory),
      prompt_cache: sizes.promptCacheBytes,
      total: sumOf(memory) + sizes.promptCacheBytes,
      available: plan.roomBytes,
    },
    drafter: drafter && partsOf(drafter),
    stream_bytes: plan.streamBytes,
    kv_bytes_per_token: plan.tokenBytes,
    fits: refusal === null,
    refusal,
  };
}

const partsOf = ({ weightBytes, stateBytes, kvBytes, workspaceBytes }: ModelPlan["memory"]) => ({
  weights: weightBytes,
  states: stateBytes,
  kv: kvBytes,
  workspace: workspaceBytes,
});

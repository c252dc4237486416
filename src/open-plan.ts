/** What a model would take, and how large it would be opened: worked out without taking anything. */
import type {
  BackendOptions,
  BackendPlanner,
  DrafterOptions,
  MemoryUse,
  PlannedMemory,
} from "./backend/backend.ts";
import { sumOf } from "./backend/memory-use.ts";
import { InvariantError } from "./errors.ts";
import { memoryShareDefault, pageRows } from "./limits.ts";
import {
  backendSizes,
  type OpenSizes,
  pageBytesOf,
  type SizeOptions,
  type Sizing,
  sizesToTry,
} from "./open-sizes.ts";
import { readBytesOf } from "./weights/read-bytes.ts";
import type { Weights } from "./weights/weights.ts";

/** What is to be opened. */
export interface PlanSubject {
  readonly weights: Weights;
  readonly drafter: DrafterOptions | null;
  readonly options: SizeOptions & { readonly drafts?: boolean };
}

/** What stands unless the user says. */
export interface PlanDefaults {
  readonly promptCacheBytes: number;
  readonly kvBytes?: number;
}

/** Bytes that a model may take; null: nobody knows. */
export const roomBytesOf = (
  planner: BackendPlanner | null,
  { memoryBytes }: SizeOptions,
): number | null => memoryBytes ?? planner?.roomBytes ?? null;

/** How sizes are chosen for something, and what a backend of some is opened with. */
export function choosing(
  { weights, drafter, options }: PlanSubject,
  defaults: PlanDefaults,
  planner: BackendPlanner | null,
  roomBytes: number | null,
): { readonly sizing: Sizing; backendOf(sizes: OpenSizes, share?: number): BackendOptions } {
  // Cached prompts have states of their own beside the backend.
  const backendOf = (sizes: OpenSizes, share = 1): BackendOptions => ({
    ...backendSizes(weights, drafter, sizes, options.drafts ?? true),
    ...(roomBytes !== null && { memoryBytesMax: share * roomBytes - sizes.promptCacheBytes }),
  });
  const fits = async (sizes: OpenSizes) =>
    (await planner!.plan(backendOf(sizes, memoryShareDefault))).refusal === null;
  const sizing = {
    ...defaults,
    contextMax: weights.shape.contextMax,
    pageBytes: pageBytesOf(weights, drafter, options.kv),
    knowsRoom: roomBytes !== null,
    fits: planner && fits,
  };
  return { sizing, backendOf };
}

/** How a model would be opened. */
export interface ModelPlan {
  /** Of the weights as stored, without the drafter's; and of the matrices that every token reads. */
  readonly storedBytes: number;
  readonly readBytes: number;
  /** The longest context that the model supports. */
  readonly contextMax: number;
  readonly sizes: OpenSizes;
  /** What it runs on, for people. */
  readonly device: string;
  /** Bytes that there are for it; null: nobody knows. */
  readonly roomBytes: number | null;
  /** All that the backend takes. */
  readonly memory: MemoryUse;
  /** What of it is the drafter's; null without one. */
  readonly drafter: MemoryUse | null;
  /** What one stream more takes, and one token more of keys and values. */
  readonly streamBytes: number;
  readonly tokenBytes: number;
  /** The context that stands where none is asked for; null where none fits. */
  readonly contextDefault: number | null;
  /** Why that isn't larger; null where the model supports no more, or nothing is known against more. */
  readonly contextLimit: string | null;
  /** Why it can't be opened so; null where nothing is known against it. */
  readonly refusal: string | null;
}

/**
 * Plans what `openModel` opens.
 * @throws InputError for a size that is none, or a shape that the kernels don't take
 */
export async function planModel(
  subject: PlanSubject,
  defaults: PlanDefaults,
  planner: BackendPlanner,
): Promise<ModelPlan> {
  const { weights, drafter, options } = subject;
  const roomBytes = roomBytesOf(planner, options);
  const { sizing, backendOf } = choosing(subject, defaults, planner, roomBytes);
  const { sizes, planned } = await firstThatFits(sizesToTry(options, sizing), (each) =>
    planner.plan(backendOf(each)),
  );
  const byDefault = await defaultContext(subject, sizing, (each) =>
    planner.plan(backendOf(each, memoryShareDefault)),
  );
  const asked = backendOf(sizes);
  const planOf = async (changes: Partial<BackendOptions>) =>
    (await planner.plan({ ...asked, ...changes })).memory;
  const { memory, refusal } = planned;
  const withPage = await planOf({ pages: sizes.pages + 1 });
  const withStream = await planOf(backendOf({ ...sizes, slots: sizes.slots + 1 }));
  return {
    storedBytes: weights.storedBytes,
    readBytes: readBytesOf(weights),
    contextMax: sizing.contextMax,
    sizes,
    device: planner.device,
    roomBytes,
    memory,
    drafter: drafter && differenceOf(memory, await planOf({ drafter: null })),
    streamBytes: sumOf(withStream) - sumOf(memory),
    tokenBytes: (withPage.kvBytes - memory.kvBytes) / pageRows,
    ...byDefault,
    refusal,
  };
}

/** The context that stands where none is asked for, and what keeps it from being larger. */
async function defaultContext(
  { options: { contextTokens: _, ...options } }: PlanSubject,
  sizing: Sizing,
  plan: (sizes: OpenSizes) => Promise<PlannedMemory>,
): Promise<Pick<ModelPlan, "contextDefault" | "contextLimit">> {
  const { sizes, planned } = await firstThatFits(sizesToTry(options, sizing), plan);
  if (planned.refusal !== null) return { contextDefault: null, contextLimit: planned.refusal };
  const { contextTokens: contextDefault, pages } = sizes;
  if (contextDefault === sizing.contextMax) return { contextDefault, contextLimit: null };
  const more = { ...sizes, contextTokens: contextDefault + pageRows, pages: pages + 1 };
  return { contextDefault, contextLimit: (await plan(more)).refusal };
}

/** The first sizes that nothing is known against, or the last. */
async function firstThatFits(
  all: AsyncIterable<OpenSizes>,
  plan: (sizes: OpenSizes) => Promise<PlannedMemory>,
): Promise<{ readonly sizes: OpenSizes; readonly planned: PlannedMemory }> {
  let last: { sizes: OpenSizes; planned: PlannedMemory } | null = null;
  for await (const sizes of all) {
    last = { sizes, planned: await plan(sizes) };
    if (last.planned.refusal === null) return last;
  }
  if (!last) throw new InvariantError("no sizes to try");
  return last;
}

const differenceOf = (all: MemoryUse, rest: MemoryUse): MemoryUse => ({
  weightBytes: all.weightBytes - rest.weightBytes,
  stateBytes: all.stateBytes - rest.stateBytes,
  kvBytes: all.kvBytes - rest.kvBytes,
  workspaceBytes: all.workspaceBytes - rest.workspaceBytes,
});

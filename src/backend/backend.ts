import type { BackendLostError, NonFiniteLogitsError } from "../errors.ts";
import type { PageId, SlotId } from "../ids.ts";
import type { DrafterShape } from "../model/drafter-shape.ts";
import type { Plan } from "../model/plan.ts";
import type { ModelShape } from "../model/shape.ts";
import type { DrafterWeights } from "../weights/drafter-weights.ts";
import type { Weights } from "../weights/weights.ts";
import type { Candidates } from "./candidates.ts";

/**
 * How arithmetic happens. An implementation holds the weights, `slots` recurrent states and `pages`
 * KV pages, and executes plans. Passes run in the order in which they were given; `read` is the only
 * wait.
 *
 * Contract: what a row computes depends on its token, its position, and the state, history and KV of
 * its own stream, and on nothing else in the pass.
 */
export interface Backend extends AsyncDisposable {
  readonly info: BackendInfo;
  /**
   * Resolves when the device is gone. Every later pass fails with that error, `open`, `save` and
   * `restore` may, `release` and disposal never do.
   */
  readonly lost: Promise<BackendLostError>;
  /** Takes a slot for a new stream: its state and history become zero. */
  open(slot: SlotId): void;
  /** Prompt rows, in the prompt arithmetic class. */
  prefill(plan: Plan): PassHandle;
  /** A decode round's windows, in the decode arithmetic class. */
  verify(plan: Plan): PassHandle;
  /**
   * Waits for a pass. Each handle is read once. Where it rejects, the pass may have been done in part:
   * its slots must be opened again.
   */
  read(handle: PassHandle): Promise<PassResult>;
  /**
   * Commits a path of each window of a pass, in the order of its segments: some of its rows, each the
   * parent of the next, from the root on; or none. State, history, KV and features become, bit for bit,
   * what a chain of just those rows makes of them. A window is open until then, and every pass, `save`,
   * `hold`, `resume` and `restore` that uses its slot is refused; `open` and `release` drop it, and its
   * entry here counts for nothing. A pass without open windows is refused. A window whose draws keep
   * logits must be kept before the next pass.
   */
  keep(handle: PassHandle, paths: readonly (readonly number[])[]): void;
  /**
   * Gives the drafter rows of context: chains whose ids count for nothing, without draws. Their features
   * come from the passes that fed them; a slot holds those of its last `featureRowsOf(rowsMax)` places,
   * and those of a slot that was moved are gone.
   */
  extend(plan: Plan): void;
  /**
   * Drafts blocks: each segment a chain [anchor, mask, …] that starts behind its stream's context; draws
   * are of any rows but the first. What was fed stays as it was; keys and values of a block lie in
   * the drafter's pages until a context takes their places. Read like a pass.
   */
  draft(plan: Plan): PassHandle;
  /**
   * Sets a slot's state and history aside, on the device. The KV stays in its pages, which whoever holds
   * the state must leave as they are up to here. The slot must not be fed before this resolves.
   * @throws MemoryError where the device has no room for another
   */
  hold(slot: SlotId): Promise<HeldState>;
  /** Makes an open slot continue from a held state. Its features and kept logits are gone. */
  resume(slot: SlotId, held: HeldState): void;
  /** Copies the keys and values of a page, the drafter's among them. */
  copyPage(from: PageId, to: PageId): void;
  /** Copies a slot's state, or a held one, its history and the KV rows [0, rows) in `pages` out. */
  save(source: SlotId | HeldState, pages: readonly PageId[], rows: number): Promise<Snapshot>;
  /** Writes a snapshot into an open slot and its pages. It must not change before the next `read` or `save`. */
  restore(slot: SlotId, pages: readonly PageId[], snapshot: Snapshot): void;
  /** Gives a slot back. */
  release(slot: SlotId): void;
}

/** What `open` of every implementation takes. */
export interface BackendOptions {
  readonly weights: Weights;
  readonly slots: number;
  readonly pages: number;
  readonly rowsMax: number;
  readonly drawsMax: number;
  /** Bytes that the backend may take; more is a MemoryError before any is taken. */
  readonly memoryBytesMax?: number;
  /** Hidden states that each pass returns (`forwardSteps`). */
  readonly taps: readonly number[];
  /** Without one, `extend` and `draft` are refused. */
  readonly drafter?: DrafterOptions | null;
  /**
   * For comparisons, on backends that can: how the scan advances a state. "copy" writes another slot's and
   * copies it home, as a scan must that can't run in place. The bits are the same.
   */
  readonly gdnPath?: "inPlace" | "copy";
  readonly onProgress?: (done: number, total: number) => void;
}

export interface DrafterOptions {
  readonly weights: DrafterWeights;
  /** How many tokens, from id 0 on, it may propose; all unless said. */
  readonly vocabulary?: number;
  /**
   * What the matmuls of a block read, on backends that can choose; the backend's own activations unless
   * said. Less precise drafts come sooner and may land less often; no token depends on them.
   */
  readonly activations?: "int8";
}

/** Matmul inputs: f32; f16 with f16 weights, by a GPU's matrix unit; or int8 a weight group. */
export type Activations = "f32" | "f16" | "int8";

export interface BackendInfo {
  readonly name: string;
  /** What it runs on, for people. */
  readonly device: string;
  /** Everything on which results may depend: arithmetic of the kernels, fused or not, activations. */
  readonly arithmetic: string;
  /** What matmuls read. */
  readonly activations: Activations;
  /** Where keys and values are kept rounded to f16; else f32. */
  readonly kv?: "f16";
  readonly shape: ModelShape;
  readonly drafter: DrafterShape | null;
  readonly slots: number;
  readonly pages: number;
  readonly rowsMax: number;
  readonly drawsMax: number;
  readonly memory: MemoryUse;
}

/** Bytes that the backend holds. */
export interface MemoryUse {
  readonly weightBytes: number;
  readonly stateBytes: number;
  readonly kvBytes: number;
  readonly workspaceBytes: number;
}

/** What a backend of some sizes would take, which is what it then takes. */
export interface PlannedMemory {
  readonly memory: MemoryUse;
  /** Why it can't be had, in a sentence; null where nothing is known against it. */
  readonly refusal: string | null;
}

/** Plans backends of one kind on one device, and takes nothing. */
export interface BackendPlanner {
  /** What it runs on, for people. */
  readonly device: string;
  /** Bytes that there are for a backend, as far as anyone can tell; null: nobody can. */
  readonly roomBytes: number | null;
  /** @throws InputError for a shape that the kernels don't take */
  plan(options: BackendOptions): Promise<PlannedMemory>;
}

declare const passBrand: unique symbol;
export type PassHandle = number & { readonly [passBrand]: true };

export interface PassResult {
  /**
   * One entry for each draw of the plan; a row that isn't finite fails alone. An entry may be made when it
   * is first looked at.
   */
  readonly draws: readonly (Candidates | NonFiniteLogitsError)[];
  /** One [rows, hiddenSize] array for each tap asked for at `open`. */
  readonly taps: readonly Float32Array[];
  /** Of a draft pass with a selector: [draws, rank], what each draw's candidates are scored with. */
  readonly selector: Float32Array | null;
}

/** A slot's state and history, set aside on its backend. Disposing of it gives its memory back. */
export interface HeldState extends Disposable {
  /** What it takes on the device. */
  readonly bytes: number;
}

/** A slot's state at a position, as little-endian floats of the backend's own. */
export interface Snapshot {
  readonly rows: number;
  /** [linear layer, value head, key dim, value dim]. */
  readonly state: Float32Array;
  /** [linear layer, taps − 1, channels], oldest first. */
  readonly history: Float32Array;
  /** [full layer, row, kv head, head dim]: keys normed and rotated. */
  readonly keys: Float32Array;
  readonly values: Float32Array;
  /**
   * The drafter's, [layer, row, kv head, head dim], normed and rotated; right where the context was
   * extended. Empty without a drafter.
   */
  readonly draftKeys: Float32Array;
  readonly draftValues: Float32Array;
  /** [vocabSize]: the slot's latest row with `keepLogits`; null where there is none. */
  readonly logits: Float32Array | null;
}

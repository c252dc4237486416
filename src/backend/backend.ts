import type { BackendError, NonFiniteLogitsError } from "../errors.ts";
import type { PageId, SlotId } from "../ids.ts";
import type { Plan } from "../model/plan.ts";
import type { ModelShape } from "../model/shape.ts";
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
  /** Resolves when the device is gone; every later verb fails with that error. */
  readonly lost: Promise<BackendError>;
  /** Takes a slot for a new stream: its state and history become zero. */
  open(slot: SlotId): void;
  /** Prompt rows, in the prompt arithmetic class. */
  prefill(plan: Plan): PassHandle;
  /** A decode round's windows, in the decode arithmetic class. */
  verify(plan: Plan): PassHandle;
  /** Waits for a pass. Each handle is read once. */
  read(handle: PassHandle): Promise<PassResult>;
  /** Copies a slot's state, history and the KV rows [0, rows) in `pages` out. */
  save(slot: SlotId, pages: readonly PageId[], rows: number): Promise<Snapshot>;
  /** Writes a snapshot into an open slot and its pages. */
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
  readonly onProgress?: (done: number, total: number) => void;
}

export interface BackendInfo {
  readonly name: string;
  /** What it runs on, for people. */
  readonly device: string;
  /** Everything on which results may depend: arithmetic of the kernels, fused or not, activations. */
  readonly arithmetic: string;
  readonly shape: ModelShape;
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

declare const passBrand: unique symbol;
export type PassHandle = number & { readonly [passBrand]: true };

export interface PassResult {
  /** One entry for each draw of the plan; a row that isn't finite fails alone. */
  readonly draws: readonly (Candidates | NonFiniteLogitsError)[];
  /** One [rows, hiddenSize] array for each tap asked for at `open`. */
  readonly taps: readonly Float32Array[];
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
  /** [vocabSize]: the slot's latest row with `keepLogits`; null where there is none. */
  readonly logits: Float32Array | null;
}

import type { Backend, BackendOptions } from "../../backend/backend.ts";
import type { OpenOptions } from "../../node.ts";
import type { OpenDrafter } from "../../open-drafter.ts";
import type { Weights } from "../../weights/weights.ts";
import type { Shard } from "./shard.ts";

export interface GateOptions {
  /** Opens the backend under test. */
  readonly open: (options: BackendOptions) => Promise<Backend>;
  /** The model beside the synthetic ones, where a gate uses it. */
  readonly model: string;
  /** Opens what drafts for the model; null where nothing does. */
  readonly drafter: (target: Weights) => Promise<OpenDrafter | null>;
  /** Every cell, however long it takes. */
  readonly full: boolean;
  /** The part of the cells to run; absent: all. */
  readonly shard?: Shard | undefined;
  /** A further folder with `golden/` and `models/`; null for none. */
  readonly references: string | null;
  /** How another process opens the same backend and drafter; absent: it can't. */
  readonly choice?: OpenOptions;
}

/** What a gate ran on, for its report. */
export const describeBackend = ({ info }: Pick<Backend, "info">): string =>
  `${info.name}: ${info.device}; ${info.arithmetic}`;

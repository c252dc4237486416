import type { BackendChoice } from "../../node.ts";

export interface GateOptions {
  readonly backend: Partial<BackendChoice>;
  /** The model beside the synthetic ones, where a gate uses it. */
  readonly model: string;
  /** Every cell, however long it takes. */
  readonly full: boolean;
  /** A further folder with `golden/` and `models/`; null for none. */
  readonly references: string | null;
}

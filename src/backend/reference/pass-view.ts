import type { Position } from "../../ids.ts";
import type { DrafterShape } from "../../model/drafter-shape.ts";
import type { RowBuffer } from "../../model/forward.ts";
import { depthsOf, type Plan, type Segment } from "../../model/plan.ts";
import type { ModelShape } from "../../model/shape.ts";
import type { ReferenceTensors } from "./load.ts";
import type { ReferenceMemory } from "./memory.ts";

/** What the steps of a pass work on. */
export interface PassView {
  readonly shape: ModelShape;
  readonly drafter: DrafterShape | null;
  readonly tensors: ReferenceTensors;
  readonly memory: ReferenceMemory;
  readonly plan: Plan;
  /** The rows of a buffer. */
  rows(name: RowBuffer): Float32Array[];
}

/** A row of a pass. */
export interface PassRow {
  readonly segment: Segment;
  /** Among the pass's rows, and among the segment's. */
  readonly row: number;
  readonly local: number;
  /** Where its keys, values and features lie. */
  readonly place: number;
  readonly position: Position;
}

export function eachRow({ segments }: Plan, visit: (row: PassRow) => void): void {
  for (const segment of segments) {
    const { firstRow, start } = segment;
    depthsOf(segment).forEach((depth, local) => {
      const row = firstRow + local;
      visit({ segment, row, local, place: start + local, position: start + depth });
    });
  }
}

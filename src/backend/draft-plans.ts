import { invariant } from "../errors.ts";
import { type Plan, validatePlan } from "../model/plan.ts";
import type { BackendInfo } from "./backend.ts";

/** Refuses what can't extend a drafter's context. @throws InvariantError */
export function checkExtend(info: BackendInfo, plan: Plan): void {
  checkChains(info, plan, "extend");
  invariant(plan.draws.length === 0, `an extend with ${plan.draws.length} draws`);
}

/** Refuses what isn't blocks to predict. @throws InvariantError */
export function checkDraft(info: BackendInfo, plan: Plan): void {
  const { blockRows } = checkChains(info, plan, "draft");
  for (const { rows } of plan.segments) {
    invariant(rows <= blockRows, `a block of ${rows} rows (at most ${blockRows})`);
  }
  const anchors = new Set(plan.segments.map(({ firstRow }) => firstRow));
  for (const { row, keepLogits } of plan.draws) {
    invariant(!anchors.has(row), `a draw of row ${row}, which is a block's anchor`);
    invariant(!keepLogits, `a draft's row ${row} that keeps its logits`);
  }
}

function checkChains(info: BackendInfo, plan: Plan, verb: string) {
  const { drafter } = info;
  invariant(drafter !== null, `${verb} without a drafter`);
  validatePlan(plan, { ...info, vocabSize: drafter.vocabSize });
  for (const { window, stateSlot, nextSlot } of plan.segments) {
    const stays = !window && stateSlot === nextSlot;
    invariant(stays, `${verb} of a segment of slot ${stateSlot} that is no chain of its own`);
  }
  return drafter;
}

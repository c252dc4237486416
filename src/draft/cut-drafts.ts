import type { TokenId } from "../ids.ts";
import { isTree } from "../model/plan.ts";
import type { LookAhead } from "../sampling/constraint.ts";
import type { Proposal } from "./proposal.ts";

/**
 * A proposal without the drafts that no draw would take, and without what hangs from them: a chain ends
 * before the first. Null: nothing is left of it.
 * @param ahead behind the pending token
 */
export function cutDrafts(proposal: Proposal, ahead: LookAhead): Proposal | null {
  const ids: TokenId[] = [];
  const parents: number[] = [];
  /** By draft as proposed, its index among those that are left; of others nobody asks. */
  const places: number[] = [];
  const behind: (LookAhead | null)[] = [];
  for (const [at, id] of proposal.ids.entries()) {
    const parent = proposal.parents ? proposal.parents[at]! : at - 1;
    const before = parent < 0 ? ahead : behind[parent];
    const after = before?.after(id) ?? null;
    behind.push(after);
    if (!after) continue;
    parents.push(parent < 0 ? -1 : places[parent]!);
    places[at] = ids.push(id) - 1;
  }
  if (ids.length === 0) return null;
  return { ...proposal, ids, parents: isTree({ parents }) ? parents : null };
}

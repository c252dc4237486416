import { isPrefix } from "../../backend/windows.ts";
import type { Drafting, DraftWish } from "../../draft/drafting.ts";
import type { Lattice } from "../../draft/lattice.ts";
import type { Proposal } from "../../draft/proposal.ts";
import type { Position, TokenId } from "../../ids.ts";
import { EventCounts } from "./event-counts.ts";

/** What must have happened. */
const events = {
  whole: "windows accepted up to a last draft",
  part: "windows accepted in part",
  rejected: "windows of which no draft was accepted",
  endedInside: "replies that ended inside a window",
  trees: "trees",
  moved: "trees whose kept rows moved",
  undrafted: "rounds without drafts after rounds with them",
  narrow: "replies with accepted drafts that were drawn from few candidates",
} as const;

/** What each drafter brought over all its cells. */
interface Brought {
  cells: number;
  drafted: number;
  accepted: number;
}

/** So many cells must show every event, and so many of one drafter an accepted draft. */
export const coverageCellsMin = 32;
const drafterCellsMin = 8;

/** Counts what the windows of a gate's cells went through. */
export class Coverage extends EventCounts<keyof typeof events> {
  readonly #drafters = new Map<string, Brought>();
  #cells = 0;

  constructor() {
    super(events);
  }

  get cells(): number {
    return this.#cells;
  }

  /** A cell of a drafter has ended. */
  addCell(drafter: string, drafted: number, accepted: number): void {
    this.#cells++;
    const brought = this.#drafters.get(drafter) ?? { cells: 0, drafted: 0, accepted: 0 };
    brought.cells++;
    brought.drafted += drafted;
    brought.accepted += accepted;
    this.#drafters.set(drafter, brought);
  }

  /**
   * What never happened.
   * @param drafters those that should have drafts accepted
   */
  missing(drafters: readonly string[]): string[] {
    const useless = drafters.flatMap((drafter) => {
      const brought = this.#drafters.get(drafter);
      if (!brought || brought.cells < drafterCellsMin || brought.accepted > 0) return [];
      return [`${drafter}: none of ${brought.drafted} drafts accepted`];
    });
    return [...this.never(), ...useless];
  }
}

/** A stream's drafting, watched. */
export class WatchedDrafting implements Drafting {
  readonly #drafting: Drafting;
  readonly #coverage: Coverage;
  /** Tokens of the round at hand. */
  #drawn: TokenId[] = [];
  #drafted = false;

  constructor(drafting: Drafting, coverage: Coverage) {
    this.#drafting = drafting;
    this.#coverage = coverage;
  }

  push(id: TokenId): void {
    this.#drawn.push(id);
    this.#drafting.push(id);
  }

  wish(most: number, blocks: boolean, streams: number): DraftWish {
    this.#drawn = [];
    return this.#drafting.wish(most, blocks, streams);
  }

  choose(lattice: Lattice, anchor: TokenId, position: Position, most: number): Proposal | null {
    return this.#drafting.choose(lattice, anchor, position, most);
  }

  landed(proposal: Proposal, accepted: number, missed: boolean, ms: number | null): void {
    this.#drafting.landed(proposal, accepted, missed, ms);
    this.#drafted = true;
    const nodes = nodesOf(proposal, this.#drawn);
    // A round goes on behind an accepted draft; where it doesn't, the draft was the reply's end.
    const ended = nodes.length === this.#drawn.length;
    if (ended) this.#coverage.add("endedInside");
    else this.#coverage.add(outcomeOf(proposal, nodes));
    if (!proposal.parents) return;
    this.#coverage.add("trees");
    const kept = ended ? nodes.slice(0, -1) : nodes;
    if (!isPrefix(kept)) this.#coverage.add("moved");
  }

  idle(ms: number | null): void {
    this.#drafting.idle(ms);
    if (this.#drafted) this.#coverage.add("undrafted");
    this.#drafted = false;
  }
}

const parentOf = ({ parents }: Proposal, node: number): number =>
  parents ? parents[node]! : node - 1;

/** The drafts that were drawn, each the child of the one before it. */
function nodesOf(proposal: Proposal, drawn: readonly TokenId[]): number[] {
  const nodes: number[] = [];
  for (const id of drawn) {
    const parent = nodes.at(-1) ?? -1;
    const node = proposal.ids.findIndex((draft, at) => {
      return draft === id && parentOf(proposal, at) === parent;
    });
    if (node < 0) break;
    nodes.push(node);
  }
  return nodes;
}

function outcomeOf(proposal: Proposal, nodes: readonly number[]): "whole" | "part" | "rejected" {
  const last = nodes.at(-1);
  if (last === undefined) return "rejected";
  const goesOn = proposal.ids.some((_, at) => parentOf(proposal, at) === last);
  return goesOn ? "part" : "whole";
}

import type { Position, TokenId } from "../ids.ts";
import type { DrafterShape } from "../model/drafter-shape.ts";
import type { SamplingParams } from "../sampling/params.ts";
import { chainDrafts } from "./chain.ts";
import { DraftChooser, DraftHistory } from "./choose.ts";
import { type CostTable, type MeasuredCosts, sharedTable } from "./cost-table.ts";
import type { Drafting, DraftingSource, DraftWish } from "./drafting.ts";
import type { Codebooks, Lattice } from "./lattice.ts";
import type { Proposal } from "./proposal.ts";
import { SuffixLookup } from "./suffix-lookup.ts";
import { treeDrafts } from "./tree.ts";

/** What all streams of an engine draft with. */
export interface DraftSetting {
  /** The model drafter; null: streams copy from themselves alone. */
  readonly model: {
    readonly shape: DrafterShape;
    /** Null for DFlash. */
    readonly codebooks: Codebooks | null;
    /** The most nodes of a tree; 0: chains. */
    readonly treeNodes: number;
  } | null;
  /** What rounds cost; null: unknown, and every draft is tried. */
  readonly costs: MeasuredCosts | null;
}

/** The drafting of an engine: copies and the model drafter, whichever brings more tokens in a ms. */
export function streamDrafting(setting: DraftSetting): DraftingSource {
  const history = new DraftHistory();
  const tables = costTables(setting.costs);
  return (sampling) => new StreamDrafting(setting, sampling, history, tables);
}

/** The table of a round by how many share it; each is made once. */
function costTables(costs: MeasuredCosts | null): (streams: number) => CostTable | null {
  const tables: CostTable[] = [];
  return (streams) => {
    if (!costs) return null;
    tables[streams] ??= sharedTable(costs, streams);
    return tables[streams];
  };
}

class StreamDrafting implements Drafting {
  readonly #setting: DraftSetting;
  readonly #sampling: SamplingParams;
  readonly #lookup = new SuffixLookup();
  readonly #chooser: DraftChooser;
  readonly #tables: (streams: number) => CostTable | null;

  constructor(
    setting: DraftSetting,
    sampling: SamplingParams,
    history: DraftHistory,
    tables: (streams: number) => CostTable | null,
  ) {
    this.#chooser = new DraftChooser(history);
    this.#setting = setting;
    this.#sampling = sampling;
    this.#tables = tables;
  }

  push(id: TokenId): void {
    this.#lookup.push(id);
  }

  wish(most: number, blocks: boolean, streams: number): DraftWish {
    const copies = this.#lookup.propose(most);
    const offer = {
      copied: copies.length,
      modelled: blocks ? this.#blockDrafts : 0,
      room: most + 1,
    };
    const { source, rows } = this.#chooser.choose(offer, this.#tables(streams));
    if (source === "model") return { kind: "block" };
    if (source === "none") return { kind: "none" };
    const ids = copies.slice(0, rows - 1);
    return { kind: "proposal", proposal: { ids, parents: null, drafter: "copy" } };
  }

  choose(lattice: Lattice, anchor: TokenId, position: Position, most: number): Proposal | null {
    const { shape, codebooks, treeNodes } = this.#setting.model!;
    const point = { anchor, position, sampling: this.#sampling };
    const wanted = Math.min(this.#blockDrafts, most);
    const { worth } = this.#chooser;
    const drafts =
      treeNodes > 0
        ? treeDrafts(lattice, codebooks, point, wanted, worth)
        : { ids: chainDrafts(lattice, codebooks, point, wanted, worth), parents: null };
    return drafts.ids.length > 0 ? { ...drafts, drafter: shape.kind } : null;
  }

  landed(proposal: Proposal, accepted: number, missed: boolean, ms: number | null): void {
    this.#chooser.observe(proposal.ids.length, accepted, missed, ms);
    if (proposal.drafter === "copy") this.#lookup.landed(proposal.ids.length, accepted);
  }

  idle(ms: number | null): void {
    this.#chooser.observe(0, 0, false, ms);
  }

  /** How many drafts a block gives: of a tree, its nodes. */
  get #blockDrafts(): number {
    const { model } = this.#setting;
    if (!model) return 0;
    return model.treeNodes > 0 ? model.treeNodes : model.shape.blockRows - 1;
  }
}

import type { Drafting } from "../../draft/drafting.ts";
import { streamDrafting } from "../../draft/stream-drafting.ts";
import type { SamplingParams } from "../../sampling/params.ts";
import {
  type GateModel,
  ModelDrafting,
  RandomDrafting,
  RightDrafting,
  type Truth,
  WrongDrafting,
} from "./drafted-drafting.ts";
import { madeUpCosts } from "./drafted-times.ts";
import type { Random } from "./timeline.ts";

/** What a cell drafts with. */
export interface DraftsOf {
  readonly truth: Truth;
  readonly sampling: SamplingParams;
  readonly random: Random;
  /** Null where there is none. */
  readonly model: GateModel | null;
}

/** A column of the grid. */
export interface GateDrafter {
  readonly name: string;
  readonly needsModel: boolean;
  /** Whether drafts should be accepted now and then: cells without any prove little. */
  readonly useful: boolean;
  /** Replies end before their time, so that they end inside windows. */
  readonly cut: boolean;
  /** Null: the engine's serial path. */
  drafting(of: DraftsOf): Drafting | null;
}

const plain = { needsModel: false, useful: true, cut: false } as const;
const modelled = { needsModel: true, useful: true, cut: false } as const;

/** A cell whose drafter needs a model runs only where there is one. */
export const gateDrafters: readonly GateDrafter[] = [
  { name: "none", ...plain, useful: false, drafting: () => null },
  {
    name: "copy",
    ...plain,
    drafting: ({ sampling }) => streamDrafting({ model: null, costs: null })(sampling),
  },
  {
    name: "chain",
    ...modelled,
    drafting: ({ model, sampling }) => new ModelDrafting(model!, sampling, false),
  },
  {
    name: "tree",
    ...modelled,
    drafting: ({ model, sampling }) => new ModelDrafting(model!, sampling, true),
  },
  {
    name: "wrong",
    ...plain,
    useful: false,
    drafting: ({ truth, random }) => new WrongDrafting(truth, random),
  },
  { name: "right", ...plain, drafting: ({ truth }) => new RightDrafting(truth) },
  {
    name: "random length",
    ...plain,
    cut: true,
    drafting: ({ truth, random }) => new RandomDrafting(truth, random),
  },
  {
    name: "auto",
    ...modelled,
    drafting: ({ model, sampling, random }) =>
      streamDrafting({ model: { ...model!, treeNodes: 0 }, costs: madeUpCosts(random) })(sampling),
  },
];

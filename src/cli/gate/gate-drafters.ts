import type { Drafting } from "../../draft/drafting.ts";
import { streamDrafting } from "../../draft/stream-drafting.ts";
import type { SamplingParams } from "../../sampling/params.ts";
import {
  AlternatingDrafting,
  type GateModel,
  ModelDrafting,
  RandomDrafting,
  RightDrafting,
  type Truth,
  WrongDrafting,
} from "./gate-drafting.ts";
import { madeUpCosts } from "./gate-times.ts";
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

/** The engine's serial path. */
export const noDrafter: GateDrafter = {
  name: "none",
  ...plain,
  useful: false,
  drafting: () => null,
};

/** A cell whose drafter needs a model runs only where there is one. */
export const gateDrafters: readonly GateDrafter[] = [
  noDrafter,
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

/** Every drafter but none, and one that is wrong every other round. */
export const streamDrafters: readonly GateDrafter[] = [
  ...gateDrafters.filter((drafter) => drafter !== noDrafter),
  {
    name: "wrong at odd rounds",
    ...plain,
    drafting: ({ truth, random }) => new AlternatingDrafting(truth, random),
  },
];

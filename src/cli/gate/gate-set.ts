import { openCheckpoint } from "../../checkpoint/checkpoint.ts";
import { openFolder } from "../../checkpoint/source-node.ts";
import type { TokenId } from "../../ids.ts";
import { modelFolder } from "../../node.ts";
import type { OpenDrafter } from "../../open-drafter.ts";
import { openTemplate, openTokenizer } from "../../open-text.ts";
import { weightsFromCheckpoint } from "../../weights/from-checkpoint.ts";
import type { Weights } from "../../weights/weights.ts";
import type { GateDrafter } from "./gate-drafters.ts";
import { type GatePrompt, gatePrompts } from "./gate-prompts.ts";
import type { GateSampling } from "./gate-samplings.ts";
import type { GateOptions } from "./options.ts";

/** What replies are made with. */
export interface GateSet {
  readonly weights: Weights;
  readonly drafter: Omit<OpenDrafter, keyof AsyncDisposable> | null;
  readonly eosIds: readonly TokenId[];
  readonly prompts: readonly GatePrompt[];
}

/** A grid of replies. */
export interface ReplySet extends GateSet {
  /** The first is greedy. */
  readonly samplings: readonly GateSampling[];
  readonly drafters: readonly GateDrafter[];
  /** Of a reply. */
  readonly tokensMax: number;
}

/** Why cells without a model drafter didn't run. */
export const noModelDrafter = "there is no drafter for this model";

/** A model of the user's, with what drafts for it. */
export async function openGateSet(options: GateOptions): Promise<GateSet & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const folder = await openFolder(modelFolder(options.model));
  const checkpoint = opening.use(await openCheckpoint(folder));
  const weights = await weightsFromCheckpoint(checkpoint);
  const { vocabSize } = weights.shape;
  const tokenizer = await openTokenizer(folder, vocabSize);
  const template = await openTemplate(folder);
  const drafter = opening.use(await options.drafter(weights));
  const opened = opening.move();
  return {
    weights,
    drafter,
    eosIds: checkpoint.config.eosIds,
    prompts: gatePrompts(tokenizer, template, vocabSize),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

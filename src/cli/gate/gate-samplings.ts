import type { TokenId } from "../../ids.ts";
import {
  plainSampling,
  resolveSampling,
  type SamplingFields,
  type SamplingParams,
  withSeed,
} from "../../sampling/params.ts";
import { Sampler } from "../../sampling/sampler.ts";

/** A way to draw, as a request would ask for it. */
export interface GateSampling {
  readonly name: string;
  readonly fields: SamplingFields;
}

/** Tokens that every vocabulary has; where text is text, among them a comma, a full stop and a newline. */
const penalties: SamplingFields = {
  repetition_penalty: 1.15,
  presence_penalty: 0.4,
  frequency_penalty: 0.3,
  logit_bias: { "11": 1.5, "13": -2, "198": -100 },
};

/** Every value of each field beside others of the rest; the seed follows from the prompt, or is given. */
export const gateSamplings: readonly GateSampling[] = [
  { name: "greedy", fields: { temperature: 0 } },
  { name: "t0.7 k20 p0.95", fields: { temperature: 0.7, top_k: 20, top_p: 0.95 } },
  { name: "t1 k0", fields: { temperature: 1, top_k: 0 } },
  { name: "t0.7 k0 m0.05", fields: { temperature: 0.7, top_k: 0, min_p: 0.05, seed: 7 } },
  {
    name: "t1 k20 p0.95 m0.05",
    fields: { temperature: 1, top_k: 20, top_p: 0.95, min_p: 0.05, seed: -1 },
  },
  { name: "greedy penalised", fields: { temperature: 0, ...penalties } },
  {
    name: "t1 k0 penalised",
    fields: { temperature: 1, top_k: 0, seed: 2 ** 53 - 1, ...penalties },
  },
  {
    name: "t0.7 k20 p0.95 penalised",
    fields: { temperature: 0.7, top_k: 20, top_p: 0.95, ...penalties },
  },
];

/** The sampling of a stream with this prompt. */
export const samplingOf = (
  { fields }: GateSampling,
  promptIds: readonly TokenId[],
): SamplingParams => withSeed(resolveSampling(fields, plainSampling), promptIds);

/** Whether it draws from a row's first candidates, and not from all of it. */
export const needsFew = (sampling: GateSampling, promptIds: readonly TokenId[]): boolean =>
  new Sampler(samplingOf(sampling, promptIds), promptIds).candidatesNeeded > 0;

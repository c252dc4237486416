import { InputError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { type LogitAdjustments, noAdjustments } from "./adjust.ts";
import { type AdjustFields, resolveAdjustments } from "./adjust-fields.ts";
import { between, finite, show } from "./field-values.ts";
import { promptSeed } from "./seed.ts";

/** How the tokens of one stream are drawn. Made by `resolveSampling`, so always valid. */
export interface SamplingParams {
  /** ≥ 0; 0 takes the likeliest token. */
  readonly temperature: number;
  /** Candidates kept, likeliest first; 0 keeps all. */
  readonly topK: number;
  /** Probability mass kept, in (0, 1]; 1 keeps all. */
  readonly topP: number;
  /** Least probability kept, as a share of the likeliest token's, in [0, 1]; 0 keeps all. */
  readonly minP: number;
  /** What is done to the logits before all of these. */
  readonly adjust: LogitAdjustments;
  /** 64 bits, unsigned. */
  readonly seed: bigint;
}

/** How many of a row's first candidates `drawToken` reads: 1 when greedy; 0 means all of them. */
export function candidatesNeeded(params: Pick<SamplingParams, "temperature" | "topK">): number {
  return params.temperature <= 0 ? 1 : params.topK;
}

/** What a request may say, as it came: null or absent means the server's default. */
export interface SamplingFields extends AdjustFields {
  readonly temperature?: unknown;
  readonly top_k?: unknown;
  readonly top_p?: unknown;
  readonly min_p?: unknown;
  readonly seed?: unknown;
}

/** The server's defaults: the checkpoint's generation_config under the operator's flags. */
export type SamplingDefaults = Omit<SamplingParams, "seed">;

/** The model's own distribution: the defaults where nobody says anything else. */
export const plainSampling: SamplingDefaults = {
  temperature: 1,
  topK: 0,
  topP: 1,
  minP: 0,
  adjust: noAdjustments,
};

/** A request's sampling, before its prompt is known; a null `seed` will come from the prompt. */
export type SamplingChoice = SamplingDefaults & { readonly seed: bigint | null };

function temperatureOf(value: unknown): number {
  const temperature = finite(value, "temperature");
  if (temperature >= 0) return temperature;
  throw new InputError(`temperature must be at least 0, not ${temperature}.`, "temperature");
}

/** Zero and below switch top-k off, as in the reference system. */
function topKOf(value: unknown): number {
  const topK = finite(value, "top_k");
  if (Number.isSafeInteger(topK)) return Math.max(0, topK);
  throw new InputError(`top_k must be a whole number, not ${topK}.`, "top_k");
}

function topPOf(value: unknown): number {
  const topP = finite(value, "top_p");
  if (topP > 0 && topP <= 1) return topP;
  throw new InputError(`top_p must be over 0 and at most 1, not ${topP}.`, "top_p");
}

/** Any whole number that arrived without rounding; negative ones wrap as two's complement does. */
function seedOf(value: unknown): bigint {
  if (typeof value === "bigint" && value >= -(2n ** 63n) && value < 2n ** 64n) {
    return BigInt.asUintN(64, value);
  }
  if (typeof value === "number" && Number.isSafeInteger(value)) {
    return BigInt.asUintN(64, BigInt(value));
  }
  const range = "a whole number within ±(2^53 − 1)";
  throw new InputError(`seed must be ${range}, not ${show(value)}.`, "seed");
}

/**
 * Checks each field of a request and fills the absent ones from `defaults`.
 * @throws InputError naming the field.
 */
export function resolveSampling(
  fields: SamplingFields,
  defaults: SamplingDefaults,
): SamplingChoice {
  return {
    temperature: temperatureOf(fields.temperature ?? defaults.temperature),
    topK: topKOf(fields.top_k ?? defaults.topK),
    topP: topPOf(fields.top_p ?? defaults.topP),
    minP: between(fields.min_p ?? defaults.minP, 0, 1, "min_p"),
    adjust: resolveAdjustments(fields, defaults.adjust),
    seed: fields.seed === undefined || fields.seed === null ? null : seedOf(fields.seed),
  };
}

/** Completes a choice once the prompt is known. `salt` moves every derived seed at once. */
export function withSeed(
  choice: SamplingChoice,
  promptIds: readonly TokenId[],
  salt = 0,
): SamplingParams {
  return { ...choice, seed: choice.seed ?? promptSeed(promptIds, salt) };
}

import { InputError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { isRecord, shown } from "../json.ts";
import { logitBiasEntriesMax } from "../limits.ts";
import type { LogitAdjustments } from "./adjust.ts";
import { between, finite, show } from "./field-values.ts";

/** What a request may say about its logits, as it came: null or absent means the default. */
export interface AdjustFields {
  readonly repetition_penalty?: unknown;
  readonly presence_penalty?: unknown;
  readonly frequency_penalty?: unknown;
  /** A plain object of token ids in decimal, each with what is added to its logit. */
  readonly logit_bias?: unknown;
}

/** As OpenAI's and vLLM's. */
const penaltyMax = 2;
const biasMax = 100;
/** No sign, no leading zeros: two keys are never one token. */
const idPattern = /^(0|[1-9]\d*)$/;

function repetitionPenaltyOf(value: unknown): number {
  const penalty = finite(value, "repetition_penalty");
  if (penalty > 0) return penalty;
  throw new InputError(`repetition_penalty must be over 0, not ${penalty}.`, "repetition_penalty");
}

/** Whether the vocabulary has the ids is checked where it is known. */
function logitBiasOf(value: unknown): ReadonlyMap<TokenId, number> {
  if (!isRecord(value)) {
    const rule = "an object of token ids and numbers";
    throw new InputError(`logit_bias must be ${rule}, not ${show(value)}.`, "logit_bias");
  }
  const entries = Object.entries(value);
  if (entries.length > logitBiasEntriesMax) {
    const bound = `at most ${logitBiasEntriesMax} tokens`;
    throw new InputError(`logit_bias may name ${bound}, not ${entries.length}.`, "logit_bias");
  }
  return new Map(entries.map(([key, bias]) => [biasedId(key), biasOf(key, bias)]));
}

function biasedId(key: string): TokenId {
  if (idPattern.test(key)) return Number(key);
  const rule = 'must be token ids in decimal, such as "42"';
  throw new InputError(`The keys of logit_bias ${rule}, not ${shown(key)}.`, "logit_bias");
}

function biasOf(key: string, value: unknown): number {
  if (typeof value === "number" && Math.abs(value) <= biasMax) return value;
  const rule = `must be a number between ${-biasMax} and ${biasMax}`;
  throw new InputError(
    `The logit_bias of ${shown(key)} ${rule}, not ${show(value)}.`,
    "logit_bias",
  );
}

/**
 * Checks each field of a request and fills the absent ones from `defaults`.
 * @throws InputError naming the field
 */
export function resolveAdjustments(
  fields: AdjustFields,
  defaults: LogitAdjustments,
): LogitAdjustments {
  const presence = fields.presence_penalty ?? defaults.presencePenalty;
  const frequency = fields.frequency_penalty ?? defaults.frequencyPenalty;
  const bias = fields.logit_bias ?? null;
  return {
    repetitionPenalty: repetitionPenaltyOf(fields.repetition_penalty ?? defaults.repetitionPenalty),
    presencePenalty: between(presence, -penaltyMax, penaltyMax, "presence_penalty"),
    frequencyPenalty: between(frequency, -penaltyMax, penaltyMax, "frequency_penalty"),
    logitBias: bias === null ? defaults.logitBias : logitBiasOf(bias),
  };
}

import { z } from "zod";
import { type ConfigFields, fail, flag, optionalField } from "./config-fields.ts";

/** Sampling values that the checkpoint recommends; null where it says nothing. */
export interface GenerationDefaults {
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly topK: number | null;
  readonly minP: number | null;
  readonly repetitionPenalty: number | null;
}

const eosType = z.union([z.int().min(0), z.array(z.int().min(0))]);

/**
 * Every `eos_token_id` of the given objects, ascending.
 *
 * @throws CheckpointError also for an id that no token of the model has
 */
export function readEosIds(
  configs: readonly (ConfigFields | null)[],
  vocabSize: number,
): readonly number[] {
  const ids = new Set<number>();
  for (const config of configs) {
    const value = optionalField([config], "eos_token_id", eosType) ?? [];
    for (const id of typeof value === "number" ? [value] : value) {
      if (config && id >= vocabSize) {
        fail(config, "eos_token_id", `must be below the vocab_size of ${vocabSize}`, id);
      }
      ids.add(id);
    }
  }
  return [...ids].sort((a, b) => a - b);
}

function numberThat(rule: string, holds: (value: number) => boolean): z.ZodType<number> {
  return z.number({ error: rule }).refine(holds, { error: rule });
}

/** The ranges that requests have too (`sampling/*.ts`), or every reply would fail. */
const temperature = numberThat("must be at least 0", (value) => value >= 0);
const topP = numberThat("must be over 0 and at most 1", (value) => value > 0 && value <= 1);
const topK = z.int({ error: "must be a whole number" });
const minP = numberThat("must be between 0 and 1", (value) => value >= 0 && value <= 1);
const repetitionPenalty = numberThat("must be over 0", (value) => value > 0);

/** The sampling fields of generation_config.json; `do_sample: false` takes the likeliest token. */
export function readGenerationDefaults(generation: ConfigFields | null): GenerationDefaults {
  const from = [generation];
  const recommended = optionalField(from, "temperature", temperature) ?? null;
  const samples = optionalField(from, "do_sample", flag) ?? true;
  return {
    temperature: samples ? recommended : 0,
    topP: optionalField(from, "top_p", topP) ?? null,
    topK: optionalField(from, "top_k", topK) ?? null,
    minP: optionalField(from, "min_p", minP) ?? null,
    repetitionPenalty: optionalField(from, "repetition_penalty", repetitionPenalty) ?? null,
  };
}

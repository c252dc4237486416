import { z } from "zod";
import { type ConfigFields, optionalField } from "./config-fields.ts";

/** Sampling values that the checkpoint recommends; null where it says nothing. */
export interface GenerationDefaults {
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly topK: number | null;
  readonly minP: number | null;
}

const eosType = z.union([z.int().min(0), z.array(z.int().min(0))]);

/** Every `eos_token_id` of the given objects, ascending. */
export function readEosIds(configs: readonly (ConfigFields | null)[]): readonly number[] {
  const ids = new Set<number>();
  for (const config of configs) {
    const value = optionalField([config], "eos_token_id", eosType) ?? [];
    for (const id of typeof value === "number" ? [value] : value) ids.add(id);
  }
  return [...ids].sort((a, b) => a - b);
}

/** The sampling fields of generation_config.json. */
export function readGenerationDefaults(generation: ConfigFields | null): GenerationDefaults {
  const unit = z.number().min(0).max(1);
  return {
    temperature: optionalField([generation], "temperature", z.number().min(0)) ?? null,
    topP: optionalField([generation], "top_p", unit) ?? null,
    topK: optionalField([generation], "top_k", z.int().min(0)) ?? null,
    minP: optionalField([generation], "min_p", unit) ?? null,
  };
}

import { InputError } from "../errors.ts";
import type { JsonObject } from "./body.ts";

/**
 * Fields that would change a reply and that deltafold doesn't honour, each with the values that ask
 * for nothing. Anything else in them is refused, because a client would take it for done; fields
 * that are not listed here or in a schema change no reply and are ignored, as clients expect.
 */
const neutralValues: ReadonlyMap<string, readonly unknown[]> = new Map<string, readonly unknown[]>([
  ["best_of", [1]],
  ["suffix", [""]],
  ["modalities", [["text"]]],
  ["functions", [[]]],
  ["function_call", ["auto", "none"]],
  ["min_tokens", [0]],
  ["stop_token_ids", [[]]],
  ["bad_words", [[]]],
  ["verbosity", ["medium"]],
  ["web_search_options", []],
  ["audio", []],
  ["allowed_token_ids", [[]]],
  ["include_stop_str_in_output", [false]],
  ["truncate_prompt_tokens", []],
  ["use_beam_search", [false]],
  ["prompt_logprobs", [false]],
  ["chat_template", []],
  ["add_generation_prompt", [true]],
  ["continue_final_message", [false]],
  // Samplers of other servers, and what switches them off.
  ["typical_p", [1]],
  ["mirostat", [0]],
  ["dry_multiplier", [0]],
  ["xtc_probability", [0]],
]);

/** vLLM's family of forms: those that are known are read in `grammar-fields.ts`. */
const formPrefix = "guided_";
const knownForms: ReadonlySet<string> = new Set(
  ["json", "regex", "choice", "grammar", "decoding_backend"].map((name) => formPrefix + name),
);

/** @throws InputError naming the first field that can't be honoured. */
export function refuseUnsupported(body: JsonObject): void {
  for (const [name, value] of Object.entries(body)) {
    const unknownForm = name.startsWith(formPrefix) && !knownForms.has(name);
    const neutral = unknownForm ? [] : neutralValues.get(name);
    if (neutral) refuseUnlessNeutral(name, value, neutral);
  }
}

/**
 * @param neutral the values that ask for nothing, as null does
 * @throws InputError for any other
 */
export function refuseUnlessNeutral(
  name: string,
  value: unknown,
  neutral: readonly unknown[],
): void {
  const written = neutral.map((each) => JSON.stringify(each));
  if (value === null || written.includes(JSON.stringify(value))) return;
  const except = written.length > 0 ? ` except as ${written.join(" or ")}` : "";
  throw unsupported(name, `is not supported${except}`);
}

/** For a field that would be taken for done. @param rule what the message says of it */
export const unsupported = (name: string, rule: string): InputError =>
  new InputError(`${name} ${rule}.`, name, "unsupported_parameter");

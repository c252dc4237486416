import { InputError } from "../errors.ts";
import type { JsonObject } from "./body.ts";

/**
 * Fields that would change a reply and that aren't honoured, each with the values that ask for
 * nothing, as null does. Anything else in them is refused, because a client would take it for done;
 * fields that are in no such list and no schema change no reply and are ignored, as clients expect.
 */
export type Unsupported = ReadonlyMap<string, readonly unknown[]>;

/** Of chats and completions. */
const unsupportedFields: Unsupported = new Map<string, readonly unknown[]>([
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
  ["skip_special_tokens", [true]],
  ["truncate_prompt_tokens", []],
  ["use_beam_search", [false]],
  ["prompt_logprobs", [false]],
  ["logits_processors", [[]]],
  ["include_reasoning", [true]],
  ["documents", [[]]],
  ["chat_template", []],
  ["add_generation_prompt", [true]],
  ["continue_final_message", [false]],
  // llama.cpp's.
  ["reasoning_format", ["auto", "deepseek"]],
  ["parse_tool_calls", [true]],
  ["n_cmpl", [1]],
  ["n_probs", [0]],
  ["t_max_predict_ms", [0, -1]],
  ["lora", [[]]],
  // Samplers of other servers, and what switches them off.
  ["typical_p", [1]],
  ["mirostat", [0]],
  ["dry_multiplier", [0]],
  ["xtc_probability", [0]],
  ["repeat_penalty", [1]],
  ["dynatemp_range", [0]],
  ["top_n_sigma", [0, -1]],
  ["min_keep", [0]],
  ["samplers", [[]]],
]);

/** Fields of other servers, and what they are called here. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ["enable_thinking", "chat_template_kwargs.enable_thinking"],
  ["regex", "guided_regex"],
  ["ebnf", "guided_grammar"],
]);

/** vLLM's family of forms: those that are known are read in `grammar-fields.ts`. */
const formPrefix = "guided_";
const knownForms: ReadonlySet<string> = new Set(
  ["json", "regex", "choice", "grammar", "decoding_backend"].map((name) => formPrefix + name),
);

/** @throws InputError naming a field of chats and completions that can't be honoured */
export function refuseUnsupported(body: JsonObject): void {
  refuseNames(body, otherNames);
  refuseValues(body, unsupportedFields);
  const unknown = Object.keys(body).filter(
    (name) => name.startsWith(formPrefix) && !knownForms.has(name),
  );
  refuseValues(body, new Map(unknown.map((name) => [name, []])));
}

/**
 * @param place of the object in a body, with a dot behind it
 * @throws InputError naming the first field with a value that asks for something
 */
export function refuseValues(object: JsonObject, fields: Unsupported, place = ""): void {
  for (const [name, value] of Object.entries(object)) {
    const neutral = fields.get(name)?.map((each) => JSON.stringify(each));
    if (!neutral || value === null || neutral.includes(JSON.stringify(value))) continue;
    const except = neutral.length > 0 ? ` except as ${neutral.join(" or ")}` : "";
    throw unsupported(place + name, `is not supported${except}`);
  }
}

/**
 * @param names fields that other bodies have, and what they are called in this one; null: nothing
 * @throws InputError naming the first of these that a body has
 */
export function refuseNames(body: JsonObject, names: ReadonlyMap<string, string | null>): void {
  for (const [name, value] of Object.entries(body)) {
    const other = names.get(name);
    if (other === undefined || value === null) continue;
    throw unsupported(name, other === null ? "has no place here" : `is called ${other} here`);
  }
}

/** For a field that would be taken for done. @param rule what the message says of it */
export const unsupported = (name: string, rule: string): InputError =>
  new InputError(`${name} ${rule}.`, name, "unsupported_parameter");

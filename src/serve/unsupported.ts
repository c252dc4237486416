import { InputError } from "../errors.ts";
import type { JsonObject } from "./body.ts";

/**
 * Fields that would change a reply and that deltafold doesn't honour, each with the values that ask
 * for nothing. Anything else in them is refused, because a client would take it for done; fields
 * that are not listed here or in a schema change no reply and are ignored, as clients expect.
 */
const neutralValues: ReadonlyMap<string, readonly unknown[]> = new Map<string, readonly unknown[]>([
  ["n", [1]],
  ["best_of", [1]],
  ["echo", [false]],
  ["suffix", [""]],
  ["modalities", [["text"]]],
  ["response_format", [{ type: "text" }]],
  ["structured_outputs", [{}]],
  ["grammar", [""]],
  ["tool_choice", ["auto", "none"]],
  ["parallel_tool_calls", [true]],
  ["functions", [[]]],
  ["function_call", ["auto", "none"]],
  ["logprobs", [false]],
  ["top_logprobs", [0]],
  ["min_tokens", [0]],
  ["stop_token_ids", [[]]],
  ["bad_words", [[]]],
  ["reasoning_effort", []],
  ["thinking_budget", []],
]);

/** vLLM's family of constraints: guided_json, guided_regex and so on. */
const refusedPrefix = "guided_";

/** @throws InputError naming the first field that can't be honoured. */
export function refuseUnsupported(body: JsonObject): void {
  for (const [name, value] of Object.entries(body)) {
    const neutral = name.startsWith(refusedPrefix) ? [] : neutralValues.get(name);
    if (neutral === undefined || value === null) continue;
    const written = neutral.map((each) => JSON.stringify(each));
    if (written.includes(JSON.stringify(value))) continue;
    const except = written.length > 0 ? ` except as ${written.join(" or ")}` : "";
    throw new InputError(`${name} is not supported yet${except}.`, name, "unsupported_parameter");
  }
}

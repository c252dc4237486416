import type { JsonObject } from "./body.ts";
import { refuseNames } from "./unsupported.ts";

/** Fields of chats, and what they are called here; null: they have no place. */
const otherNames: ReadonlyMap<string, string | null> = new Map([
  ["chat_template_kwargs", "thinking"],
  ["ebnf", "output_config.format"],
  ["enable_thinking", "thinking"],
  ["grammar", "output_config.format"],
  ["guided_choice", "output_config.format"],
  ["guided_grammar", "output_config.format"],
  ["guided_json", "output_config.format"],
  ["guided_regex", "output_config.format"],
  ["ignore_eos", null],
  ["json_schema", "output_config.format"],
  ["logprobs", null],
  ["max_completion_tokens", "max_tokens"],
  ["n", null],
  ["n_predict", "max_tokens"],
  ["parallel_tool_calls", "tool_choice.disable_parallel_tool_use"],
  ["reasoning_budget_tokens", "thinking.budget_tokens"],
  ["reasoning_effort", "output_config.effort"],
  ["regex", "output_config.format"],
  ["response_format", "output_config.format"],
  ["stop", "stop_sequences"],
  ["structured_outputs", "output_config.format"],
  ["thinking_budget", "thinking.budget_tokens"],
  ["thinking_budget_tokens", "thinking.budget_tokens"],
  ["thinking_token_budget", "thinking.budget_tokens"],
  ["top_logprobs", null],
]);

/** @throws InputError naming the first field of chats that nobody would heed */
export function refuseOtherNames(body: JsonObject): void {
  refuseNames(body, otherNames);
}

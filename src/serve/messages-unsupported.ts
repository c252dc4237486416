import type { JsonObject } from "./body.ts";
import { unsupported } from "./unsupported.ts";

/** Fields of chats, and what they are called here; null: they have no place. */
const otherNames: ReadonlyMap<string, string | null> = new Map([
  ["chat_template_kwargs", "thinking"],
  ["grammar", "output_config.format"],
  ["guided_choice", "output_config.format"],
  ["guided_grammar", "output_config.format"],
  ["guided_json", "output_config.format"],
  ["guided_regex", "output_config.format"],
  ["ignore_eos", null],
  ["logprobs", null],
  ["n", null],
  ["parallel_tool_calls", "tool_choice.disable_parallel_tool_use"],
  ["reasoning_effort", "output_config.effort"],
  ["response_format", "output_config.format"],
  ["stop", "stop_sequences"],
  ["structured_outputs", "output_config.format"],
  ["thinking_budget", "thinking.budget_tokens"],
]);

/** @throws InputError naming the first field of chats that nobody would heed */
export function refuseOtherNames(body: JsonObject): void {
  for (const [name, value] of Object.entries(body)) {
    const other = otherNames.get(name);
    if (other === undefined || value === null) continue;
    throw unsupported(
      name,
      other === null ? "has no place in messages" : `is called ${other} here`,
    );
  }
}

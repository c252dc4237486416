/** What /v1/responses refuses, because a client would take it for done. */
import type { JsonObject } from "./body.ts";
import { refuseUnlessNeutral, unsupported } from "./unsupported.ts";

/** Fields that deltafold doesn't honour, each with the values that ask for nothing. */
const neutralValues: ReadonlyMap<string, readonly unknown[]> = new Map<string, readonly unknown[]>([
  ["background", [false]],
  ["context_management", []],
  ["conversation", []],
  ["moderation", []],
  ["n", [1]],
  ["prompt", []],
  ["truncation", ["disabled"]],
]);

/** Fields of chats, and what they are called here. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ["logprobs", "include"],
  ["max_completion_tokens", "max_output_tokens"],
  ["max_tokens", "max_output_tokens"],
  ["messages", "input"],
  ["reasoning_effort", "reasoning.effort"],
  ["response_format", "text.format"],
]);

/** @throws InputError naming the first field that can't be honoured */
export function refuseFields(body: JsonObject): void {
  for (const [name, value] of Object.entries(body)) {
    if (value === null) continue;
    const otherName = otherNames.get(name);
    if (otherName) throw unsupported(name, `is called ${otherName} here`);
    const neutral = neutralValues.get(name);
    if (neutral) refuseUnlessNeutral(name, value, neutral);
  }
}

/**
 * Refuses what has a type that the API knows and deltafold doesn't, such as built-in tools.
 * @param types of the entries of the list `place`; who parses them refuses those that are no text
 * @throws InputError naming the first such entry's type
 */
export function refuseTypes(
  types: readonly unknown[],
  known: readonly string[],
  place: string,
): void {
  for (const [index, type] of types.entries()) {
    if (typeof type !== "string" || known.includes(type)) continue;
    const rule = `can't be ${JSON.stringify(type)}: only ${known.join(", ")} is supported`;
    throw unsupported(`${place}[${index}].type`, rule);
  }
}

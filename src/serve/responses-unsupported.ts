/** What /v1/responses refuses, because a client would take it for done. */
import type { JsonObject } from "./body.ts";
import { refuseNames, refuseValues, type Unsupported, unsupported } from "./unsupported.ts";

const unsupportedFields: Unsupported = new Map<string, readonly unknown[]>([
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

/** @throws InputError naming a field that can't be honoured */
export function refuseFields(body: JsonObject): void {
  refuseNames(body, otherNames);
  refuseValues(body, unsupportedFields);
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

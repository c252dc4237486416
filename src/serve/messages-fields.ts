/** What the schemas of Anthropic's bodies are made with. */
import { z } from "zod";
import { asGiven, list, mapping } from "./fields.ts";

/**
 * The error of a union whose kinds one field tells apart.
 * @param what such as "a block": what a value must be that is no object
 */
export function kindError(what: string, ...kinds: readonly string[]): z.core.$ZodErrorMap {
  const quoted = kinds.map((kind) => JSON.stringify(kind));
  const words = quoted.length > 1 ? `one of ${quoted.join(", ")}` : quoted.join();
  return ({ code }) => (code === "invalid_type" ? what : words);
}

/** A list of blocks; a string is as good as one block of text. */
export function blocks<T>(block: z.ZodType<T>): z.ZodType<T[]> {
  const given = z.custom<unknown>(Array.isArray, { error: "a string or a list of blocks" });
  return z.preprocess(
    (value) => (typeof value === "string" ? [{ type: "text", text: value }] : value),
    given.pipe(list(block)),
  );
}

/** A JSON object as it came: templates print such objects, so the order of their keys is the prompt's. */
export const givenObject: z.ZodType<Record<string, unknown>> = asGiven(mapping);

import { z } from "zod";
import type { CompletionRequest } from "../engine.ts";
import type { JsonObject } from "./body.ts";
import { parseFields, text } from "./fields.ts";
import { type Delivery, replyShape, toDelivery, toReplyRequest } from "./reply-fields.ts";
import { refuseUnsupported } from "./unsupported.ts";

/** Which numbers are ids, the engine knows. */
const ids = z.custom<number[]>(
  (value) => Array.isArray(value) && value.every((id) => typeof id === "number"),
);

const completionFields = z.object({
  ...replyShape,
  prompt: z.union([text, ids], {
    error: "a string or a list of token ids (one prompt at a time)",
  }),
});

/**
 * A body of /v1/completions.
 * @throws InputError naming the field at fault
 */
export function parseCompletion(body: JsonObject): {
  request: CompletionRequest;
  delivery: Delivery;
} {
  const fields = parseFields(completionFields, body);
  refuseUnsupported(body);
  const request = { ...toReplyRequest(fields), prompt: fields.prompt };
  return { request, delivery: toDelivery(fields) };
}

import { z } from "zod";
import type { CompletionRequest } from "../engine.ts";
import { InputError } from "../errors.ts";
import { topLogprobsMax } from "../limits.ts";
import type { JsonObject } from "./body.ts";
import { countTo, flag, parseFields, text, wholeNumber } from "./fields.ts";
import { eosEndsForms, type Form, parseForm } from "./grammar-fields.ts";
import { type Delivery, replyShape, toDelivery, toReplyRequest } from "./reply-fields.ts";
import { refuseUnsupported } from "./unsupported.ts";

/** Which numbers are ids, the engine knows. */
const ids = z.custom<number[]>(
  (value) => Array.isArray(value) && value.every((id) => typeof id === "number"),
);

const prompt = z.union([text, ids]);
/** Some clients make a list of their one prompt. */
const prompts = z.tuple([prompt]).transform(([only]) => only);

const completionFields = z.object({
  ...replyShape,
  prompt: z.union([prompt, prompts], {
    error: "a string or a list of token ids (one prompt at a time)",
  }),
  // With an echo, none may be asked for: the prompt's own tokens are what is wanted.
  max_tokens: wholeNumber.nullish(),
  logprobs: countTo(topLogprobsMax).nullish(),
  echo: flag.nullish(),
});

/** A body of /v1/completions. */
export interface ParsedCompletion {
  /** All but the form, which is the engine's to make. */
  readonly request: CompletionRequest;
  readonly delivery: Delivery;
  readonly form: Form | null;
  /** Whether the reply's text begins with the prompt. */
  readonly echo: boolean;
}

/** @throws InputError naming the field at fault */
export function parseCompletion(body: JsonObject): ParsedCompletion {
  const fields = parseFields(completionFields, body);
  refuseUnsupported(body);
  const echo = fields.echo ?? false;
  const topLogprobs = fields.logprobs ?? null;
  const promptLogprobs = echo && topLogprobs !== null;
  const delivery = toDelivery(fields);
  if (promptLogprobs && delivery.streamed) {
    const message = "echo with logprobs can't be streamed: the prompt's come at the end.";
    throw new InputError(message, "echo", "unsupported_parameter");
  }
  if (promptLogprobs && delivery.choices > 1) {
    const message = "echo with logprobs has one choice: the prompt's are the same in all.";
    throw new InputError(message, "n", "unsupported_parameter");
  }
  const request = { ...toReplyRequest(fields), prompt: fields.prompt, topLogprobs, promptLogprobs };
  const form = parseForm(body);
  if (form && request.ignoreEos) throw new InputError(eosEndsForms, "ignore_eos");
  return { request, delivery, form, echo };
}

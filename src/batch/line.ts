/** A line of a batch's file, as OpenAI has it: custom_id, method, url and body. */
import { InputError } from "../errors.ts";
import { isRecord, outgrown, ownValue, shown } from "../json.ts";
import { bodySeparatorsMax, customIdCharsMax, jsonDepthMax } from "../limits.ts";

export interface BatchRequest {
  readonly customId: string;
  /** Of `batchUrls`. */
  readonly url: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** What replies once, whole, and without what an earlier request left on one server. */
export const batchUrls: readonly string[] = [
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1/embeddings",
];

/**
 * Reads a line. What its body says is checked by whoever replies to it.
 * @throws InputError for one that is no request
 */
export function parseBatchLine(text: string): BatchRequest {
  const fields = parse(text);
  const customId = ownValue(fields, "custom_id");
  if (typeof customId !== "string" || customId === "" || customId.length > customIdCharsMax) {
    const rule = `a string of 1 to ${customIdCharsMax} characters`;
    throw new InputError(`custom_id must be ${rule}, not ${shown(customId)}`);
  }
  const method = ownValue(fields, "method");
  if (method !== "POST") throw new InputError(`method must be "POST", not ${shown(method)}`);
  const url = ownValue(fields, "url");
  if (typeof url !== "string" || !batchUrls.includes(url)) {
    throw new InputError(`url must be one of ${batchUrls.join(", ")}, not ${shown(url)}`);
  }
  const body = ownValue(fields, "body");
  if (!isRecord(body)) throw new InputError(`body must be an object, not ${shown(body)}`);
  if (ownValue(body, "stream") === true) throw new InputError("body.stream must not be true");
  if ((ownValue(body, "previous_response_id") ?? null) !== null) {
    throw new InputError("body.previous_response_id names a response that one server alone has");
  }
  return { customId, url, body };
}

function parse(text: string): Record<string, unknown> {
  if (outgrown(text, jsonDepthMax + 1, bodySeparatorsMax) !== null) {
    throw new InputError("it is nested too deep, or has too many values");
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new InputError("it is not valid JSON");
  }
  if (isRecord(value)) return value;
  throw new InputError(`it must be an object, not ${shown(value)}`);
}

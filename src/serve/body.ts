import { DeltafoldError, InputError, messageOf } from "../errors.ts";
import { isRecord, outgrown } from "../json.ts";
import { bodyBytesMax, bodySeparatorsMax, jsonDepthMax } from "../limits.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * A request's body: a JSON object, within the limits of size and depth.
 * @throws InputError; DeltafoldError with status 413 or 415
 */
export async function readJsonObject(request: Request): Promise<JsonObject> {
  checkHeaders(request.headers);
  const text = decode(await readBytes(request));
  checkGrowth(text);
  const value = parse(text);
  if (isRecord(value)) return value;
  throw new InputError("The body must be a JSON object.", null, "invalid_type");
}

function checkHeaders(headers: Headers): void {
  const type = headers.get("Content-Type") ?? "";
  // Browsers send only plain types across origins unasked, so this also keeps foreign pages out.
  if (type.split(";", 1)[0]!.trim().toLowerCase() !== "application/json") {
    throw unsupportedMedia(`Content-Type must be application/json, not ${JSON.stringify(type)}.`);
  }
  const encoding = headers.get("Content-Encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    throw unsupportedMedia(`A body with Content-Encoding ${JSON.stringify(encoding)} is not read.`);
  }
  if (Number(headers.get("Content-Length") ?? 0) > bodyBytesMax) throw bodyTooLarge();
}

/** Counts while it reads, because a body need not say its length. */
async function readBytes(request: Request): Promise<Uint8Array> {
  const reader = request.body?.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  while (reader) {
    const { done, value } = await reader.read().catch((cause: unknown) => {
      const message = "The body ended before it was complete.";
      throw new DeltafoldError("incomplete_body", message, { status: 400, cause });
    });
    if (done) break;
    bytes += value.length;
    if (bytes > bodyBytesMax) {
      await reader.cancel();
      throw bodyTooLarge();
    }
    chunks.push(value);
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new InputError("The body is not valid UTF-8.", null, "invalid_utf8");
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const words = messageOf(cause);
    throw new InputError(`The body is not valid JSON: ${words}`, null, "invalid_json");
  }
}

function bodyTooLarge(): DeltafoldError {
  const message = `The body is larger than ${bodyBytesMax} bytes.`;
  return new DeltafoldError("body_too_large", message, { status: 413 });
}

function unsupportedMedia(message: string): DeltafoldError {
  return new DeltafoldError("unsupported_media_type", message, { status: 415 });
}

/** @throws InputError for what would take long to parse */
function checkGrowth(text: string): void {
  const grown = outgrown(text, jsonDepthMax, bodySeparatorsMax);
  if (grown === null) return;
  throw grown === "levels"
    ? new InputError(`The body is nested deeper than ${jsonDepthMax} levels.`, null, "too_deep")
    : new InputError(
        `The body has more than ${bodySeparatorsMax} commas and colons.`,
        null,
        "too_many",
      );
}

import { ContextLengthError, type DeltafoldError, TextLengthError } from "../errors.ts";

/** Anthropic's error object. */
export interface MessagesErrorBody {
  readonly type: "error";
  readonly error: {
    readonly type: string;
    readonly message: string;
    /** What clients that branch on it find in `error_code`. */
    readonly details: { readonly error_code: string };
  };
}

const typesByStatus: ReadonlyMap<number, string> = new Map([
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [503, "overloaded_error"],
]);

/** Whether who asks for `path` speaks Anthropic's protocol, whatever becomes of the request. */
export function isMessagesPath(path: string): boolean {
  return /^(\/v1)?\/messages(\/|$)/.test(path);
}

export function messagesErrorBody(error: DeltafoldError): MessagesErrorBody {
  const { status, code } = error;
  const type = typesByStatus.get(status) ?? (status >= 500 ? "api_error" : "invalid_request_error");
  return { type: "error", error: { type, message: words(error), details: { error_code: code } } };
}

/** Of what is too long, those by which agents know that they must shorten it, or ask for less. */
function words(error: DeltafoldError): string {
  if (error instanceof TextLengthError) return `prompt is too long: ${error.message}`;
  if (!(error instanceof ContextLengthError)) return namingField(error);
  const { contextTokens, promptTokens, replyTokens } = error;
  if (replyTokens === null || promptTokens >= contextTokens) {
    return `prompt is too long: ${promptTokens} tokens > ${contextTokens} maximum`;
  }
  const sum = `${promptTokens} + ${replyTokens} > ${contextTokens}`;
  const advice = "decrease input length or `max_tokens` and try again";
  return `input length and \`max_tokens\` exceed context limit: ${sum}, ${advice}`;
}

/** The object has no place for the field at fault but these words. */
function namingField({ message, param }: DeltafoldError): string {
  return param === null || message.includes(param) ? message : `${param}: ${message}`;
}

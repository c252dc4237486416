import { BackendLostError, DeltafoldError, QueueFullError } from "../errors.ts";
import { isMessagesPath, messagesErrorBody } from "./messages-error.ts";

/** OpenAI's error object. */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: "invalid_request_error" | "rate_limit_error" | "server_error";
    readonly param: string | null;
    readonly code: string;
  };
}

/** After which a refused client may try again, where nobody knows better: about a short reply. */
const retrySecondsDefault = 1;

export function errorBody(error: DeltafoldError): ErrorBody {
  const { message, param, code } = error;
  return { error: { message, type: errorType(error.status), param, code } };
}

/**
 * An error as a whole HTTP reply.
 * @param path the request's, by which it is Anthropic's error object or OpenAI's
 */
export function errorReply(
  error: DeltafoldError,
  path = "",
  headers: Record<string, string> = {},
): Response {
  const { status } = error;
  const retry: Record<string, string> =
    status === 429 || status === 503 ? { "Retry-After": String(retrySeconds(error)) } : {};
  const body = isMessagesPath(path) ? messagesErrorBody(error) : errorBody(error);
  return Response.json(body, { status, headers: { ...retry, ...headers } });
}

function retrySeconds(error: DeltafoldError): number {
  const known = error instanceof QueueFullError ? error.retryAfterSeconds : null;
  return known ?? retrySecondsDefault;
}

/** Hears of failures that are the server's own. */
export type Report = (error: unknown) => void;

/** Whatever was thrown, as an error to show: what isn't ours may hold what clients shouldn't see. */
export function shownError(cause: unknown, report: Report): DeltafoldError {
  const error =
    cause instanceof DeltafoldError
      ? cause
      : new DeltafoldError("internal_error", "The server failed on this request.", { cause });
  if (error.status === 500 || error instanceof BackendLostError) report(cause);
  return error;
}

/** For replies that the server, not their client, ended. */
export function cancelledError(): DeltafoldError {
  return new DeltafoldError("cancelled", "The server ended this reply before it was complete.", {
    status: 503,
  });
}

function errorType(status: number): ErrorBody["error"]["type"] {
  if (status === 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

import { DeltafoldError } from "../errors.ts";
import { errorReply } from "./error-reply.ts";
import { requestId } from "./exchange.ts";
import { live, notReady } from "./health.ts";

/** Answers while there is no engine to: the process lives, but isn't ready. */
export function standIn(
  status: "loading" | "stopping",
  message: string,
): (request: Request) => Response {
  const error = new DeltafoldError(status, message, { status: 503 });
  return (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/health/live") return live();
    if (pathname === "/health/ready") return notReady({ status });
    return refusedReply(request, error);
  };
}

/** An error for a request that comes to no app. */
export function refusedReply(
  request: Request,
  error: DeltafoldError,
  headers: Record<string, string> = {},
): Response {
  const { pathname } = new URL(request.url);
  return errorReply(error, pathname, { "X-Request-Id": requestId(request), ...headers });
}

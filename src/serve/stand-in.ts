import { DeltafoldError } from "../errors.ts";
import { errorReply } from "./error-reply.ts";
import { idHeaders, requestId } from "./exchange.ts";
import { live, notReady } from "./health.ts";

/**
 * Answers while there is no engine to: the process lives, but isn't ready. One that stops keeps no
 * connection, so that clients open the next elsewhere.
 */
export function standIn(
  status: "loading" | "stopping",
  message: string,
): (request: Request) => Response {
  const error = new DeltafoldError(status, message, { status: 503 });
  return (request) => {
    const reply = standInReply(request, error);
    if (status === "stopping") reply.headers.set("Connection", "close");
    return reply;
  };
}

function standInReply(request: Request, error: DeltafoldError): Response {
  const { pathname } = new URL(request.url);
  if (pathname === "/health/live") return live();
  if (pathname === "/health/ready") return notReady({ status: error.code });
  return refusedReply(pathname, request.headers.get("x-request-id"), error);
}

/**
 * An error for a request that comes to no app.
 * @param givenId what it calls itself; null where it doesn't
 */
export function refusedReply(
  path: string,
  givenId: string | null,
  error: DeltafoldError,
): Response {
  return errorReply(error, path, idHeaders(path, requestId(givenId)));
}

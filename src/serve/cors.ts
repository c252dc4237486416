import type { MiddlewareHandler } from "hono";
import { DeltafoldError } from "../errors.ts";

/** For which a browser need not ask again. */
const preflightSecondsMax = 600;

const preflightHeaders: Record<string, string> = {
  "Access-Control-Allow-Methods": "GET, HEAD, POST, DELETE",
  "Access-Control-Max-Age": String(preflightSecondsMax),
};

/** What pages may see of a reply besides its body. */
const exposedHeaders = "X-Request-Id, Request-Id, Retry-After";

/**
 * Lets pages of some origins use the server, and refuses what pages of other sites would change.
 * @param origins as browsers write them, or "*"
 */
export function cors(origins: readonly string[]): MiddlewareHandler {
  const all = origins.includes("*");
  const allowed = new Set(origins);
  return async (context, next) => {
    const { req } = context;
    const origin = req.header("Origin");
    if (origin === undefined || !(all || allowed.has(origin))) {
      if (isForeign(req.method, req.header("Sec-Fetch-Site"))) throw refusal(origin);
      await next();
      // A cache must not give this reply to pages of allowed origins.
      if (allowed.size > 0 && !all) context.res.headers.append("Vary", "Origin");
      return;
    }
    const asked = req.header("Access-Control-Request-Headers");
    const preflight = req.header("Access-Control-Request-Method") !== undefined;
    if (req.method === "OPTIONS" && preflight) {
      context.res = new Response(null, { status: 204, headers: preflightHeaders });
      if (asked) context.res.headers.set("Access-Control-Allow-Headers", asked);
    } else {
      await next();
      context.res.headers.set("Access-Control-Expose-Headers", exposedHeaders);
    }
    context.res.headers.set("Access-Control-Allow-Origin", all ? "*" : origin);
    if (!all) context.res.headers.append("Vary", "Origin");
  };
}

/** Whether a page of another site asks for a change; other programs than browsers don't say. */
const isForeign = (method: string, site: string | undefined): boolean =>
  site === "cross-site" && !["GET", "HEAD", "OPTIONS"].includes(method);

function refusal(origin: string | undefined): DeltafoldError {
  const message = `Pages of ${JSON.stringify(origin ?? "null")} may not use this server.`;
  return new DeltafoldError("origin_not_allowed", message, { status: 403 });
}

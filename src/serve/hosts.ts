import type { Context, MiddlewareHandler } from "hono";
import { DeltafoldError, InputError } from "../errors.ts";
import { exchangeOf } from "./exchange.ts";
import { probePaths } from "./health.ts";

/** What a machine calls itself: no page of another site can have these names. */
const ownNames = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Refuses requests for other hosts. A page can let its own name resolve to this machine, and is then of
 * one origin with it; but its requests still say its name (DNS rebinding). Probes call a server by
 * whatever address it has, and may.
 * @param names that are allowed besides this machine's own, without ports
 */
export function hostCheck(names: readonly string[]): MiddlewareHandler {
  const allowed = new Set([...ownNames, ...names.map((name) => name.toLowerCase())]);
  return async (context, next) => {
    const error = faultOf(context, allowed);
    if (error) {
      if (!probePaths.includes(context.req.path)) throw error;
      exchangeOf(context).isForeign = true;
    }
    await next();
  };
}

function faultOf({ req }: Context, allowed: ReadonlySet<string>): DeltafoldError | null {
  // Requests that came over no connection have no such header.
  const host = req.header("Host") ?? new URL(req.url).host;
  // Where a header is sent twice, its values come joined.
  if (host === "" || /[,\s]/.test(host)) {
    return new InputError("There must be one Host header.", null, "invalid_host");
  }
  const name = nameIn(host);
  return name !== null && allowed.has(name) ? null : refusal(host);
}

/** The name in a Host header, in small letters; null where it is malformed. */
function nameIn(host: string): string | null {
  const found = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i.exec(host);
  return found ? found[1]!.toLowerCase() : null;
}

function refusal(host: string): DeltafoldError {
  const message = `The host ${JSON.stringify(host)} is not allowed here: --allow-host NAME does.`;
  return new DeltafoldError("host_not_allowed", message, { status: 403 });
}

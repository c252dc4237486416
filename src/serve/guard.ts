import type { Context, MiddlewareHandler } from "hono";
import { DeltafoldError } from "../errors.ts";
import { exchangeOf } from "./exchange.ts";
import type { ApiKeys } from "./keys.ts";

/**
 * Lets requests with one of the keys in, and those of pages that ask which methods they may use.
 * Whatever needs no key must be added before.
 */
export function guard(keys: ApiKeys): MiddlewareHandler {
  return async (context, next) => {
    const { req } = context;
    if (req.method !== "OPTIONS") {
      const label = labelOf(context, keys);
      if (label === null) throw refusal(context);
      exchangeOf(context).keyLabel = label;
    }
    await next();
  };
}

/** Whose key came with a request; null where none did that is known. */
export function labelOf(context: Context, keys: ApiKeys): string | null {
  for (const key of keysIn(context)) {
    const label = keys.labelOf(key);
    if (label !== null) return label;
  }
  return null;
}

/** Some clients send two. */
function keysIn({ req }: Context): string[] {
  const bearer = /^Bearer +(\S+)$/i.exec(req.header("Authorization") ?? "")?.[1];
  return [bearer, req.header("x-api-key")].filter((key) => key !== undefined);
}

function refusal(context: Context): DeltafoldError {
  const message =
    keysIn(context).length > 0
      ? "The API key is not one of this server's."
      : "This server needs an API key: send it as Authorization: Bearer KEY, or as x-api-key.";
  return new DeltafoldError("invalid_api_key", message, { status: 401 });
}

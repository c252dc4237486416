import type { Context, MiddlewareHandler } from "hono";
import { DeltafoldError } from "../errors.ts";
import { exchangeOf } from "./exchange.ts";
import type { ApiKeys, KnownKey } from "./keys.ts";

/**
 * Lets requests with one of the keys in, and those of pages that ask which methods they may use.
 * Whatever needs no key must be added before.
 */
export function guard(keys: ApiKeys): MiddlewareHandler {
  return async (context, next) => {
    const { req } = context;
    if (req.method !== "OPTIONS") {
      const key = keyOf(context, keys);
      if (key === null) throw refusal(context);
      exchangeOf(context).key = key;
    }
    await next();
  };
}

/** Which key came with a request; null where none did that is known. */
export function keyOf(context: Context, keys: ApiKeys): KnownKey | null {
  for (const key of keysIn(context)) {
    const known = keys.find(key);
    if (known !== null) return known;
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

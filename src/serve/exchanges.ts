import type { Hono } from "hono";
import { matchedRoutes } from "hono/route";
import { DeltafoldError } from "../errors.ts";
import { urlCharactersMax } from "../limits.ts";
import { Exchange, idHeaders, keepExchange } from "./exchange.ts";
import { entryOf } from "./request-log.ts";
import type { Serving } from "./serving.ts";

/** Gives every request its id, and counts and logs it once it has ended. */
export function addExchanges(app: Hono, { clock, counts, onEnd }: Serving): void {
  app.use(async (context, next) => {
    const exchange = new Exchange(context, clock.nowMs());
    keepExchange(context, exchange);
    await next();
    const { res } = context;
    const ids = Object.entries(idHeaders(exchange.path, exchange.id));
    for (const [name, value] of ids) res.headers.set(name, value);
    if (res.status === 401) res.headers.set("WWW-Authenticate", "Bearer");
    // All paths match the handlers of all paths, which are no route.
    const route = matchedRoutes(context).findLast(({ path }) => path !== "/*");
    exchange.route = route?.path ?? null;
    void exchange.ended(res).then(() => {
      const nowMs = clock.nowMs();
      counts.add(exchange, nowMs - exchange.startMs);
      onEnd?.(entryOf(exchange, clock.unixSeconds(), nowMs));
    });
  });
  app.use(async ({ req }, next) => {
    if (req.url.length > urlCharactersMax) throw urlTooLong(req.url.length);
    await next();
  });
}

function urlTooLong(characters: number): DeltafoldError {
  const message = `A URL may have ${urlCharactersMax} characters, not ${characters}.`;
  return new DeltafoldError("url_too_long", message, { status: 414 });
}

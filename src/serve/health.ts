import type { Context, Hono } from "hono";
import { health, healthStatus } from "./describe.ts";
import { exchangeOf } from "./exchange.ts";
import { keyOf } from "./guard.ts";
import { refuseOthers, type Serving } from "./serving.ts";

/** What asks again and again whether a server lives, and whether it is ready. */
export const probePaths: readonly string[] = ["/health/live", "/health/ready"];

/**
 * /health, /health/live and /health/ready. Where there are keys, who brings none is told the status
 * alone; so is who calls another host.
 */
export function addHealth(app: Hono, { engine, keys }: Serving): void {
  const known = (context: Context) =>
    !exchangeOf(context).isForeign && (!keys || keyOf(context, keys) !== null);
  app.get("/health", (context) => {
    const body = known(context) ? health(engine) : healthStatus(engine, false);
    return context.json(body, engine.condition.serving ? 200 : 503);
  });
  app.get("/health/live", live);
  app.get("/health/ready", (context) => {
    const body = healthStatus(engine, known(context));
    return engine.condition.serving ? Response.json(body) : notReady(body);
  });
  for (const path of ["/health", ...probePaths]) refuseOthers(app, path, "GET");
}

/** The process answers, whatever else it can do. */
export const live = (): Response => Response.json({ status: "ok" });

/** Requests should go elsewhere for a while. */
export const notReady = (body: object): Response =>
  Response.json(body, { status: 503, headers: { "Retry-After": "1" } });

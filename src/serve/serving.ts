import type { Context, Hono } from "hono";
import type { Clock, SetAlarm } from "../clock.ts";
import type { Engine } from "../engine.ts";
import { DeltafoldError } from "../errors.ts";
import type { Choices } from "./choices.ts";
import { errorReply, type Report } from "./error-reply.ts";
import { exchangeOf } from "./exchange.ts";
import type { ApiKeys } from "./keys.ts";
import { type ReplyFormat, type ReplyHead, randomId } from "./reply-format.ts";
import type { RequestEntry } from "./request-log.ts";
import { sendEvents, sendWhole } from "./send.ts";
import type { ServedCounts } from "./served-counts.ts";

/** What an app's endpoints share. */
export interface Serving {
  readonly engine: Engine;
  readonly clock: Clock;
  /** Hears of failures that are the server's own. */
  readonly report: Report;
  /** A client whose events wait for so long to be read is dropped. */
  readonly unreadMs: number;
  /** How long an event stream is silent before a comment says that it goes on; 0: none does. */
  readonly pingMs: number;
  readonly setAlarm: SetAlarm;
  /** Without one of these, clients are told little; null: they need none. */
  readonly keys: ApiKeys | null;
  readonly counts: ServedCounts;
  /** What the process takes of the machine's memory; null where nobody knows. */
  readonly residentBytes: (() => number) | null;
  /** Hears of every request once it has ended. */
  readonly onEnd: ((entry: RequestEntry) => void) | null;
}

/** @param prefix of the reply's id */
export function replyHead({ engine, clock }: Serving, prefix: string): ReplyHead {
  return { id: randomId(prefix), created: clock.unixSeconds(), model: engine.info.model };
}

/**
 * Answers a request with its replies.
 * @throws DeltafoldError where they fail before anything was sent
 */
export async function answer(
  context: Context,
  serving: Serving,
  choices: Choices,
  format: ReplyFormat,
  streamed: boolean,
): Promise<Response> {
  const exchange = exchangeOf(context);
  exchange.replying(context.req.raw.signal, choices.streams);
  if (!streamed) return await sendWhole(choices, format);
  return await sendEvents(choices, format, { ...serving, exchange, hangUp: hangUpOf(context) });
}

/** What @hono/node-server brings of a connection; other runtimes bring something else, or nothing. */
interface NodeBindings {
  readonly outgoing?: { destroy?(): unknown };
}

function hangUpOf({ env }: Context): (() => void) | null {
  const { outgoing } = (env ?? {}) as NodeBindings;
  return outgoing?.destroy ? () => outgoing.destroy?.() : null;
}

/** Answers the methods that `path` doesn't have; its own must be added before. */
export function refuseOthers(app: Hono, path: string, allowed: string): void {
  app.all(path, (context) => {
    const { req } = context;
    const message = `${req.path} takes ${allowed}, not ${req.method}.`;
    const error = new DeltafoldError("method_not_supported", message, { status: 405 });
    exchangeOf(context).failed(error);
    return errorReply(error, req.path, { Allow: allowed });
  });
}

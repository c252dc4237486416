import { type Context, Hono } from "hono";
import { type Clock, type SetAlarm, setAlarm as systemAlarm, systemClock } from "../clock.ts";
import type { Engine } from "../engine.ts";
import { DeltafoldError } from "../errors.ts";
import { pingMsDefault, unreadMsMax } from "../limits.ts";
import { addChats } from "./chats.ts";
import { addCompletions } from "./completions.ts";
import { cors } from "./cors.ts";
import { addEmbeddings } from "./embeddings.ts";
import { errorReply, type Report, shownError } from "./error-reply.ts";
import { exchangeOf } from "./exchange.ts";
import { addExchanges } from "./exchanges.ts";
import { guard } from "./guard.ts";
import { addHealth } from "./health.ts";
import { hostCheck } from "./hosts.ts";
import type { ApiKeys } from "./keys.ts";
import { addMessages } from "./messages.ts";
import { addMetrics } from "./metrics.ts";
import { addModels } from "./models.ts";
import { addPage, type PageFiles } from "./page.ts";
import { addProps } from "./props.ts";
import type { RequestEntry } from "./request-log.ts";
import { addResponses } from "./responses.ts";
import { ServedCounts } from "./served-counts.ts";
import type { Serving } from "./serving.ts";
import { addTokens } from "./tokens.ts";

export interface AppOptions {
  readonly engine: Engine;
  readonly clock?: Clock;
  /** Hears of failures that are the server's own; the console unless given. */
  readonly report?: Report;
  /** A client whose events wait for so long to be read is dropped. */
  readonly unreadMs?: number;
  /** How long an event stream is silent before a comment says that it goes on; 0: none does. */
  readonly pingMs?: number;
  readonly setAlarm?: SetAlarm;
  /** Who may use it; unless given, everybody who can reach it. */
  readonly keys?: ApiKeys;
  /** Whether metrics need no key. */
  readonly metricsOpen?: boolean;
  /** By which names it may be called besides this machine's own; unless given, by any. */
  readonly hosts?: readonly string[];
  /** Of pages that may use it, as browsers write them, or "*"; none unless given. */
  readonly corsOrigins?: readonly string[];
  /** What the process takes of the machine's memory. */
  readonly residentBytes?: () => number;
  /** The built pages; none unless given. */
  readonly page?: PageFiles;
  /** Hears of every request once it has ended. */
  readonly onEnd?: (entry: RequestEntry) => void;
}

/** An OpenAI-compatible server over an engine, for any runtime that speaks fetch. */
export function createApp(options: AppOptions): Hono {
  const { engine, clock = systemClock, report = console.error } = options;
  const { unreadMs = unreadMsMax, pingMs = pingMsDefault, setAlarm = systemAlarm } = options;
  const { keys = null, residentBytes = null, onEnd = null } = options;
  const counts = new ServedCounts();
  const times = { clock, unreadMs, pingMs, setAlarm };
  const serving = { engine, report, ...times, keys, counts, residentBytes, onEnd };
  const app = new Hono();
  addFront(app, serving, options);
  addModels(app, serving);
  addChats(app, serving);
  addCompletions(app, serving);
  addResponses(app, serving);
  addMessages(app, serving);
  addTokens(app, serving);
  addProps(app, serving);
  addEmbeddings(app);
  const refuse = (context: Context, error: DeltafoldError) => {
    exchangeOf(context).failed(error);
    return errorReply(error, context.req.path);
  };
  app.notFound((context) => refuse(context, unknownUrl(context, app)));
  app.onError((cause, context) => refuse(context, shownError(cause, report)));
  return app;
}

/** What requests pass before they come to the endpoints, and what is there without a key. */
function addFront(app: Hono, serving: Serving, options: AppOptions): void {
  const { keys, hosts, corsOrigins = [], metricsOpen = false, page } = options;
  addExchanges(app, serving);
  if (hosts) app.use(hostCheck(hosts));
  app.use(cors(corsOrigins));
  addHealth(app, serving);
  if (page) addPage(app, page);
  if (metricsOpen) addMetrics(app, serving);
  if (keys) app.use(guard(keys));
  if (!metricsOpen) addMetrics(app, serving);
}

/** Clients of OpenAI's API are told a base URL, of which /v1 is easily left out. */
function unknownUrl({ req }: Context, { routes }: Hono): DeltafoldError {
  const isBelow = routes.some(({ path }) => path === `/v1${req.path}`);
  const hint = isBelow ? ` The base URL of clients ends in /v1: here it is /v1${req.path}.` : "";
  const message = `Unknown URL: ${req.method} ${req.path}.${hint}`;
  return new DeltafoldError("unknown_url", message, { status: 404 });
}

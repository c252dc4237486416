import { type Context, Hono } from "hono";
import { type Clock, type SetAlarm, setAlarm as systemAlarm, systemClock } from "../clock.ts";
import type { Engine } from "../engine.ts";
import { DeltafoldError } from "../errors.ts";
import { unreadMsMax } from "../limits.ts";
import type { Stream } from "../stream.ts";
import { readJsonObject } from "./body.ts";
import { ChatFormat } from "./chat-format.ts";
import { parseChat } from "./chat-request.ts";
import { CompletionFormat } from "./completion-format.ts";
import { parseCompletion } from "./completion-request.ts";
import { health, modelCard } from "./describe.ts";
import { errorReply, type Report, shownError } from "./error-reply.ts";
import type { Delivery } from "./reply-fields.ts";
import { type ReplyFormat, type ReplyHead, randomId } from "./reply-format.ts";
import { type Connection, cancelWith, sendEvents, sendWhole } from "./send.ts";

export interface AppOptions {
  readonly engine: Engine;
  readonly clock?: Clock;
  /** Hears of failures that are the server's own; the console unless given. */
  readonly report?: Report;
  /** A client whose events wait for so long to be read is dropped. */
  readonly unreadMs?: number;
  readonly setAlarm?: SetAlarm;
}

/** An OpenAI-compatible server over an engine, for any runtime that speaks fetch. */
export function createApp(options: AppOptions): Hono {
  const { engine, clock = systemClock, report = console.error } = options;
  const { unreadMs = unreadMsMax, setAlarm = systemAlarm } = options;
  const app = new Hono();
  addModels(app, engine, clock.unixSeconds());
  addReplies(app, engine, clock, { report, unreadMs, setAlarm });
  app.notFound(({ req }) => errorReply(unknownUrl(`${req.method} ${req.path}`)));
  app.onError((cause) => errorReply(shownError(cause, report)));
  return app;
}

function addModels(app: Hono, engine: Engine, created: number): void {
  const card = modelCard(engine.info, created);
  app.get("/health", (context) => {
    return context.json(health(engine), engine.condition.serving ? 200 : 503);
  });
  app.get("/v1/models", (context) => context.json({ object: "list", data: [card] }));
  app.get("/v1/models/:id", (context) => {
    const id = context.req.param("id");
    if (id !== engine.info.model) throw unknownModel(id);
    return context.json(card);
  });
  for (const path of ["/health", "/v1/models", "/v1/models/:id"]) refuseOthers(app, path, "GET");
}

function addReplies(
  app: Hono,
  engine: Engine,
  clock: Clock,
  serving: Omit<Connection, "hangUp">,
): void {
  const head = (prefix: string): ReplyHead => ({
    id: randomId(prefix),
    created: clock.unixSeconds(),
    model: engine.info.model,
  });
  const send = (context: Context, stream: Stream, format: ReplyFormat, delivery: Delivery) => {
    cancelWith(context.req.raw.signal, stream);
    if (!delivery.streamed) return sendWhole(stream, format);
    return sendEvents(stream, format, { ...serving, hangUp: hangUpOf(context) });
  };
  app.post("/v1/chat/completions", async (context) => {
    const { request, delivery } = parseChat(await readJsonObject(context.req.raw));
    const format = new ChatFormat(head("chatcmpl-"), delivery.includeUsage);
    return await send(context, engine.chat(request), format, delivery);
  });
  app.post("/v1/completions", async (context) => {
    const { request, delivery } = parseCompletion(await readJsonObject(context.req.raw));
    const format = new CompletionFormat(head("cmpl-"), delivery.includeUsage);
    return await send(context, engine.complete(request), format, delivery);
  });
  for (const path of ["/v1/chat/completions", "/v1/completions"]) refuseOthers(app, path, "POST");
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
function refuseOthers(app: Hono, path: string, method: string): void {
  app.all(path, ({ req }) => {
    const message = `${req.path} takes ${method}, not ${req.method}.`;
    const error = new DeltafoldError("method_not_supported", message, { status: 405 });
    return errorReply(error, { Allow: method });
  });
}

function unknownUrl(what: string): DeltafoldError {
  return new DeltafoldError("unknown_url", `Unknown URL: ${what}.`, { status: 404 });
}

function unknownModel(id: string): DeltafoldError {
  const message = `The model ${JSON.stringify(id)} is not served here.`;
  return new DeltafoldError("model_not_found", message, { status: 404, param: "model" });
}

import { Hono } from "hono";
import { type Clock, systemClock } from "../clock.ts";
import type { Engine } from "../engine.ts";
import { DeltafoldError } from "../errors.ts";
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
import { cancelWith, sendEvents, sendWhole } from "./send.ts";

export interface AppOptions {
  readonly engine: Engine;
  readonly clock?: Clock;
  /** Hears of failures that are the server's own; the console unless given. */
  readonly report?: Report;
}

/** An OpenAI-compatible server over an engine, for any runtime that speaks fetch. */
export function createApp(options: AppOptions): Hono {
  const { engine, clock = systemClock, report = console.error } = options;
  const app = new Hono();
  addModels(app, engine, clock.unixSeconds());
  addReplies(app, engine, clock, report);
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

function addReplies(app: Hono, engine: Engine, clock: Clock, report: Report): void {
  const head = (prefix: string): ReplyHead => ({
    id: randomId(prefix),
    created: clock.unixSeconds(),
    model: engine.info.model,
  });
  const send = (request: Request, stream: Stream, format: ReplyFormat, delivery: Delivery) => {
    cancelWith(request.signal, stream);
    return delivery.streamed ? sendEvents(stream, format, report) : sendWhole(stream, format);
  };
  app.post("/v1/chat/completions", async ({ req: { raw } }) => {
    const { request, delivery } = parseChat(await readJsonObject(raw));
    const format = new ChatFormat(head("chatcmpl-"), delivery.includeUsage);
    return await send(raw, engine.chat(request), format, delivery);
  });
  app.post("/v1/completions", async ({ req: { raw } }) => {
    const { request, delivery } = parseCompletion(await readJsonObject(raw));
    const format = new CompletionFormat(head("cmpl-"), delivery.includeUsage);
    return await send(raw, engine.complete(request), format, delivery);
  });
  for (const path of ["/v1/chat/completions", "/v1/completions"]) refuseOthers(app, path, "POST");
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

import type { Context, Hono } from "hono";
import type { Engine } from "../engine.ts";
import { type JsonObject, readJsonObject } from "./body.ts";
import { beginChoices } from "./choices.ts";
import { ResponseFormat } from "./responses-format.ts";
import { namingInput, parseResponse } from "./responses-request.ts";
import { type ResponseObject, ResponseStore } from "./responses-store.ts";
import { addStored, ownerOf } from "./responses-stored.ts";
import { answer, refuseOthers, replyHead, type Serving } from "./serving.ts";

const path = "/v1/responses";

/** /v1/responses, and what it has stored. */
export function addResponses(app: Hono, serving: Serving): void {
  const store = new ResponseStore();
  app.post(path, (context) => respond(context, serving, store));
  refuseOthers(app, path, "POST");
  addStored(app, store);
}

/** How the tokens were drawn, whether the request said so or not. */
function drawnBy({ temperature, top_p }: JsonObject, { info: { sampling } }: Engine): object {
  return { temperature: temperature ?? sampling.temperature, top_p: top_p ?? sampling.topP };
}

async function respond(
  context: Context,
  serving: Serving,
  store: ResponseStore,
): Promise<Response> {
  const { engine, clock } = serving;
  const body = await readJsonObject(context.req.raw);
  const owner = ownerOf(context);
  const parsed = parseResponse(body, (id) => store.conversation(id, owner));
  const finished = (response: ResponseObject) => {
    if (parsed.store) store.add({ response, input: parsed.items, owner });
  };
  const head = replyHead(serving, "resp_");
  const echo = { ...parsed.echo, ...drawnBy(body, engine) };
  const format = new ResponseFormat({ head, echo, clock, finished });
  await engine.prepare(parsed.request);
  const choices = await beginChoices(engine, 1, parsed.form, context.req.raw.signal, (own) =>
    namingInput(() => engine.chat({ ...parsed.request, ...own })),
  );
  return await answer(context, serving, choices, format, parsed.delivery.streamed);
}

import type { Hono } from "hono";
import { readJsonObject } from "./body.ts";
import { beginChoices } from "./choices.ts";
import { CompletionFormat } from "./completion-format.ts";
import { parseCompletion } from "./completion-request.ts";
import { answer, refuseOthers, replyHead, type Serving } from "./serving.ts";

const path = "/v1/completions";

export function addCompletions(app: Hono, serving: Serving): void {
  const { engine } = serving;
  app.post(path, async (context) => {
    const { request, delivery, form, echo } = parseCompletion(
      await readJsonObject(context.req.raw),
    );
    const { choices: count, includeUsage, streamed } = delivery;
    if (typeof request.prompt === "string") await engine.prepare(request.prompt);
    const choices = await beginChoices(engine, count, form, context.req.raw.signal, (own) =>
      engine.complete({ ...request, ...own }),
    );
    const head = replyHead(serving, "cmpl-");
    const echoed = echo ? engine.textOf(request.prompt) : "";
    const format = new CompletionFormat(head, includeUsage, count, echoed);
    return await answer(context, serving, choices, format, streamed);
  });
  refuseOthers(app, path, "POST");
}

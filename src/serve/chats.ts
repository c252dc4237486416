import type { Hono } from "hono";
import { readJsonObject } from "./body.ts";
import { ChatFormat } from "./chat-format.ts";
import { parseChat } from "./chat-request.ts";
import { beginChoices } from "./choices.ts";
import { answer, refuseOthers, replyHead, type Serving } from "./serving.ts";

const path = "/v1/chat/completions";

export function addChats(app: Hono, serving: Serving): void {
  const { engine } = serving;
  app.post(path, async (context) => {
    const { request, delivery, form } = parseChat(await readJsonObject(context.req.raw));
    const { choices: count, includeUsage, streamed } = delivery;
    await engine.prepare(request);
    const choices = await beginChoices(engine, count, form, context.req.raw.signal, (own) =>
      engine.chat({ ...request, ...own }),
    );
    const format = new ChatFormat(replyHead(serving, "chatcmpl-"), includeUsage, count);
    return await answer(context, serving, choices, format, streamed);
  });
  refuseOthers(app, path, "POST");
}

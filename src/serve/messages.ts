import type { Context, Hono } from "hono";
import { readJsonObject } from "./body.ts";
import { beginChoices } from "./choices.ts";
import { MessagesFormat } from "./messages-format.ts";
import { parseMessages, parsePrompt } from "./messages-request.ts";
import { answer, refuseOthers, replyHead, type Serving } from "./serving.ts";

/** Anthropic's Messages, where its clients look for them and without the version. */
export function addMessages(app: Hono, serving: Serving): void {
  for (const path of ["/v1/messages", "/messages"]) {
    const countPath = `${path}/count_tokens`;
    app.post(path, (context) => sendMessage(context, serving));
    app.post(countPath, (context) => countTokens(context, serving));
    refuseOthers(app, path, "POST");
    refuseOthers(app, countPath, "POST");
  }
}

async function sendMessage(context: Context, serving: Serving): Promise<Response> {
  const { engine } = serving;
  const parsed = parseMessages(await readJsonObject(context.req.raw));
  const { request, form, showsThinking } = parsed;
  await engine.prepare(request);
  const choices = await beginChoices(engine, 1, form, context.req.raw.signal, (own) =>
    engine.chat({ ...request, ...own }),
  );
  const { promptTokens } = choices.first;
  const format = new MessagesFormat(replyHead(serving, "msg_"), { promptTokens, showsThinking });
  return await answer(context, serving, choices, format, parsed.delivery.streamed);
}

async function countTokens(context: Context, { engine }: Serving): Promise<Response> {
  const prompt = parsePrompt(await readJsonObject(context.req.raw));
  await engine.prepare(prompt);
  return context.json({ input_tokens: engine.promptOf(prompt).length });
}

import type { Hono } from "hono";
import { z } from "zod";
import type { Engine } from "../engine.ts";
import { InputError } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { detokenizedTokensMax } from "../limits.ts";
import { type JsonObject, readJsonObject } from "./body.ts";
import { parseChat } from "./chat-request.ts";
import { flag, parseFields, text } from "./fields.ts";
import { refuseOthers, type Serving } from "./serving.ts";
import { refuseValues, type Unsupported } from "./unsupported.ts";

/** /tokenize and /detokenize in vLLM's shape, with llama.cpp's name for a text, `content`. */
export function addTokens(app: Hono, { engine }: Serving): void {
  for (const prefix of ["", "/v1"]) {
    app.post(`${prefix}/tokenize`, async (context) => {
      return context.json(await tokenized(engine, await readJsonObject(context.req.raw)));
    });
    app.post(`${prefix}/detokenize`, async (context) => {
      const prompt = textOf(engine, await readJsonObject(context.req.raw));
      return context.json({ prompt, content: prompt });
    });
    for (const name of ["tokenize", "detokenize"]) refuseOthers(app, `${prefix}/${name}`, "POST");
  }
}

const tokenizeFields = z.object({
  prompt: text.nullish(),
  content: text.nullish(),
  messages: z.unknown().optional(),
  // Changes nothing: no vocabulary that is read here adds any.
  add_special_tokens: flag.nullish(),
  return_token_strs: flag.nullish(),
});

/** Of texts; those of messages are those of chats. llama.cpp's. */
const unsupportedFields: Unsupported = new Map([
  ["parse_special", [true]],
  ["with_pieces", [false]],
]);

async function tokenized(engine: Engine, body: JsonObject): Promise<object> {
  const fields = parseFields(tokenizeFields, body);
  refuseValues(body, unsupportedFields);
  const tokens = await tokensOf(engine, body, fields);
  return {
    count: tokens.length,
    max_model_len: engine.info.contextTokens,
    tokens,
    ...(fields.return_token_strs && { token_strs: tokens.map((id) => engine.textOf([id])) }),
  };
}

/** @throws InputError unless there is one of a text and messages */
async function tokensOf(
  engine: Engine,
  body: JsonObject,
  { prompt, content, messages }: z.infer<typeof tokenizeFields>,
): Promise<readonly TokenId[]> {
  const given = [prompt, content, messages].filter((each) => each !== undefined && each !== null);
  if (given.length > 1) {
    throw new InputError("prompt, content and messages can't stand together.", "prompt");
  }
  const written = prompt ?? content;
  if (typeof written === "string") {
    await engine.prepare(written);
    return engine.tokenize(written);
  }
  if (given.length === 1) {
    const { request } = parseChat(body);
    await engine.prepare(request);
    return engine.promptOf(request);
  }
  throw new InputError("prompt or messages must be there.", "prompt", "missing_field");
}

/** Which numbers are ids, the engine knows. Of too many, none is looked at. */
function isIds(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  return value.length > detokenizedTokensMax || value.every((id) => typeof id === "number");
}
const detokenizeFields = z.object({
  tokens: z.custom<TokenId[]>(isIds, { error: "a list of token ids" }),
});

function textOf(engine: Engine, body: JsonObject): string {
  const { tokens } = parseFields(detokenizeFields, body);
  if (tokens.length <= detokenizedTokensMax) return engine.textOf(tokens);
  const message = `At most ${detokenizedTokensMax} tokens are read.`;
  throw new InputError(message, "tokens", "too_many");
}

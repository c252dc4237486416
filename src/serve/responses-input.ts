/** What a body of /v1/responses brings of a conversation. */
import { z } from "zod";
import { InputError } from "../errors.ts";
import { isRecord, nestsWithin, shown } from "../json.ts";
import { jsonDepthMax } from "../limits.ts";
import type { JsonObject } from "./body.ts";
import { list, parseFields, rawList, text } from "./fields.ts";
import { randomId } from "./reply-format.ts";
import type { MessageItem, MessagePart, ResponseItem } from "./responses-items.ts";
import { refuseTypes } from "./responses-unsupported.ts";

const id = text.nullish();
const textOrParts = z.union([text, rawList<unknown>()], { error: "a string or a list of parts" });

const item = z.discriminatedUnion(
  "type",
  [
    z.object({
      type: z.literal("message").optional(),
      id,
      role: z.enum(["user", "assistant", "system", "developer"], {
        error: "user, assistant, system or developer",
      }),
      content: textOrParts,
    }),
    z.object({
      type: z.literal("function_call"),
      id,
      call_id: text,
      name: text,
      arguments: text.refine(isObjectText, { error: "the text of a JSON object" }),
    }),
    z.object({
      type: z.literal("function_call_output"),
      id,
      call_id: text,
      output: textOrParts,
    }),
    z.object({ type: z.literal("reasoning"), id, content: rawList<unknown>().nullish() }),
  ],
  { error: "an item" },
);

const itemTypes = ["message", "function_call", "function_call_output", "reasoning"];

const anyInput = z.object({
  input: z.union([text, rawList<unknown>()], { error: "a string or a list of items" }),
});
const itemInput = z.object({ input: list(item) });

/**
 * The items of a body's `input`, each with an id.
 * @throws InputError naming the item or the part at fault
 */
export function parseInput(body: JsonObject): ResponseItem[] {
  const { input } = parseFields(anyInput, body);
  if (typeof input === "string") return [messageItem("user", input, null, "input")];
  refuseTypes(input.map(itemTypeOf), itemTypes, "input");
  const { input: items } = parseFields(itemInput, body);
  return items.map((fields, index) => toItem(fields, `input[${index}]`));
}

/** Whether text is a JSON object that templates can walk. */
export function isObjectText(written: string): boolean {
  try {
    return nestsWithin(written, jsonDepthMax) && isRecord(JSON.parse(written));
  } catch {
    return false;
  }
}

/** An item that has an id and neither type nor role can only be meant as a reference. */
function itemTypeOf(value: unknown): unknown {
  if (!isRecord(value)) return undefined;
  const { type, role } = value;
  const reference = type === undefined && role === undefined && typeof value["id"] === "string";
  return reference ? "item_reference" : type;
}

function toItem(fields: z.infer<typeof item>, place: string): ResponseItem {
  const status = "completed";
  if (fields.type === "function_call") {
    const { type, call_id, name, arguments: written } = fields;
    return { type, id: fields.id ?? randomId("fc_"), status, call_id, name, arguments: written };
  }
  if (fields.type === "function_call_output") {
    const { type, call_id } = fields;
    const output = textsOf(fields.output, ["input_text"], `${place}.output`).join("");
    return { type, id: fields.id ?? randomId("fco_"), status, call_id, output };
  }
  if (fields.type === "reasoning") {
    const texts = textsOf(fields.content ?? [], ["reasoning_text"], `${place}.content`);
    const content = texts.map((each) => ({ type: "reasoning_text" as const, text: each }));
    return { type: "reasoning", id: fields.id ?? randomId("rs_"), status, summary: [], content };
  }
  return messageItem(fields.role, fields.content, fields.id ?? null, `${place}.content`);
}

function messageItem(
  role: MessageItem["role"],
  written: string | readonly unknown[],
  given: string | null,
  place: string,
): MessageItem {
  const texts = textsOf(written, ["input_text", "output_text"], place);
  const part = (each: string): MessagePart =>
    role === "assistant"
      ? { type: "output_text", text: each, annotations: [], logprobs: [] }
      : { type: "input_text", text: each };
  const content = texts.map(part);
  return { type: "message", id: given ?? randomId("msg_"), status: "completed", role, content };
}

/** @throws InputError for parts of other types than `types` */
function textsOf(
  written: string | readonly unknown[],
  types: readonly string[],
  place: string,
): string[] {
  if (typeof written === "string") return [written];
  return written.map((part, index) => partText(part, types, `${place}[${index}]`));
}

function partText(part: unknown, types: readonly string[], place: string): string {
  const { type, text: written }: { type?: unknown; text?: unknown } = isRecord(part) ? part : {};
  if (typeof type !== "string" || !types.includes(type)) {
    const found = isRecord(part) ? `one of type ${shown(type)}` : shown(part);
    const known = types.map((each) => `"${each}"`).join(" or ");
    const rule = `must be a part of type ${known}, which is all that this model reads`;
    throw new InputError(`${place} ${rule}, not ${found}.`, place);
  }
  if (typeof written === "string") return written;
  throw new InputError(`${place}.text must be a string, not ${shown(written)}.`, `${place}.text`);
}

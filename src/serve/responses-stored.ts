import type { Context, Hono } from "hono";
import { z } from "zod";
import { InputError } from "../errors.ts";
import { exchangeOf } from "./exchange.ts";
import { parseFields } from "./fields.ts";
import type { ResponseItem } from "./responses-items.ts";
import type { ResponseStore } from "./responses-store.ts";
import { refuseOthers } from "./serving.ts";
import { unsupported } from "./unsupported.ts";

const path = "/v1/responses/:id";
const itemsPath = "/v1/responses/:id/input_items";

/** Reading and deleting stored responses. */
export function addStored(app: Hono, store: ResponseStore): void {
  app.get(path, (context) => {
    if (context.req.query("stream") === "true") {
      throw unsupported("stream", "can't be true here: a response is streamed once");
    }
    return context.json(store.get(context.req.param("id"), ownerOf(context)).response);
  });
  app.delete(path, (context) => {
    const id = context.req.param("id");
    store.delete(id, ownerOf(context));
    return context.json({ id, object: "response.deleted", deleted: true });
  });
  refuseOthers(app, path, "GET, DELETE");
  app.get(itemsPath, (context) => {
    const { input } = store.get(context.req.param("id"), ownerOf(context));
    return context.json(pageOf(input, context.req.query()));
  });
  refuseOthers(app, itemsPath, "GET");
}

/** To whom the responses that a request asks for must belong, and the one that it makes belongs. */
export const ownerOf = (context: Context): string | null => exchangeOf(context).key?.digest ?? null;

const itemsMax = 100;
const limit = `a whole number from 1 to ${itemsMax}`;
const query = z.object({
  limit: z.coerce
    .number({ error: limit })
    .int({ error: limit })
    .min(1, { error: limit })
    .max(itemsMax, { error: limit })
    .default(20),
  order: z.enum(["asc", "desc"], { error: '"asc" or "desc"' }).default("desc"),
  after: z.string().optional(),
});

/** @throws InputError naming the parameter at fault */
function pageOf(items: readonly ResponseItem[], asked: Record<string, string>): object {
  const { limit: most, order, after } = parseFields(query, asked);
  const ordered = order === "asc" ? items : items.toReversed();
  const before = after === undefined ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== undefined && before < 0) {
    throw new InputError(
      `after names no item of this response: ${JSON.stringify(after)}.`,
      "after",
    );
  }
  const data = ordered.slice(before + 1, before + 1 + most);
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? "",
    last_id: data.at(-1)?.id ?? "",
    has_more: before + 1 + most < ordered.length,
  };
}

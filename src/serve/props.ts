import type { Hono } from "hono";
import type { Engine } from "../engine.ts";
import { DeltafoldError } from "../errors.ts";
import { readJsonObject } from "./body.ts";
import { parseChat } from "./chat-request.ts";
import { refuseOthers, type Serving } from "./serving.ts";

/** /props, /slots and /apply-template, by which clients of llama.cpp look into a server. */
export function addProps(app: Hono, { engine }: Serving): void {
  app.get("/props", (context) => context.json(propsOf(engine)));
  app.get("/slots", (context) => {
    const { slots } = engine.info.backend;
    const { running } = engine.counts;
    if (running >= slots && context.req.query("fail_on_no_slot") !== undefined) throw noSlot(slots);
    return context.json(slotsOf(engine));
  });
  app.post("/apply-template", async (context) => {
    const { request } = parseChat(await readJsonObject(context.req.raw));
    await engine.prepare(request);
    return context.json({ prompt: engine.textOf(engine.promptOf(request)) });
  });
  for (const path of ["/props", "/slots"]) refuseOthers(app, path, "GET");
  refuseOthers(app, "/apply-template", "POST");
}

function propsOf({ info }: Engine): object {
  const { model, contextTokens, backend, sampling } = info;
  const { temperature, topK: top_k, topP: top_p, minP: min_p } = sampling;
  return {
    model_alias: model,
    total_slots: backend.slots,
    default_generation_settings: {
      n_ctx: contextTokens,
      params: { temperature, top_k, top_p, min_p },
    },
    modalities: { vision: false, audio: false },
  };
}

/** How many are taken is known; which, clients needn't. */
function slotsOf({ info, counts }: Engine): object[] {
  return Array.from({ length: info.backend.slots }, (_, id) => ({
    id,
    n_ctx: info.contextTokens,
    is_processing: id < counts.running,
  }));
}

function noSlot(slots: number): DeltafoldError {
  return new DeltafoldError("no_slot", `All ${slots} slots are taken.`, { status: 503 });
}

import type { Hono } from "hono";
import { DeltafoldError } from "../errors.ts";
import { modelCard } from "./describe.ts";
import { refuseOthers, type Serving } from "./serving.ts";

/** /v1/models and /v1/models/{id}. */
export function addModels(app: Hono, { engine, clock }: Serving): void {
  const card = modelCard(engine.info, clock.unixSeconds());
  app.get("/v1/models", (context) => context.json({ object: "list", data: [card] }));
  app.get("/v1/models/:id", (context) => {
    const id = context.req.param("id");
    if (id !== engine.info.model) throw unknownModel(id);
    return context.json(card);
  });
  for (const path of ["/v1/models", "/v1/models/:id"]) refuseOthers(app, path, "GET");
}

function unknownModel(id: string): DeltafoldError {
  const message = `The model ${JSON.stringify(id)} is not served here.`;
  return new DeltafoldError("model_not_found", message, { status: 404, param: "model" });
}

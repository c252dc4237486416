import type { Hono } from "hono";
import { InputError } from "../errors.ts";
import { refuseOthers } from "./serving.ts";

const path = "/v1/embeddings";

/** Where clients look for embeddings, they are told why there are none. */
export function addEmbeddings(app: Hono): void {
  app.post(path, () => {
    const message = "The models that are served here write text: they make no embeddings.";
    throw new InputError(message, null, "embeddings_not_supported");
  });
  refuseOthers(app, path, "POST");
}

import { drafterPlace, embeddedModel, modelFolder } from "../../node.ts";
import { openDrafterFor } from "../../open-drafter.ts";
import type { GateOptions } from "./options.ts";

/** The embedded model's own. */
export const nanoDrafter: GateOptions["drafter"] = async (target) => {
  const place = drafterPlace(modelFolder(embeddedModel), "auto");
  return await openDrafterFor(place!, target, {}, () => {});
};

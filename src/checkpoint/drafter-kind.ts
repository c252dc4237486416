import type { DrafterShape } from "../model/drafter-shape.ts";
import type { ConfigFields } from "./config-fields.ts";
import { configFile, readFields } from "./config-file.ts";
import type { Folder } from "./source.ts";

/** What `architectures` calls a drafter of each kind. */
const architectures: ReadonlyMap<unknown, DrafterShape["kind"]> = new Map([
  ["DFlashDraftModel", "dflash"],
  ["DFlash2DraftModel", "dflash2"],
]);

/** As their authors write them. */
export const drafterNames: Readonly<Record<DrafterShape["kind"], string>> = {
  dflash: "DFlash",
  dflash2: "DFlash2",
};

/** Which drafter config.json describes; null for anything else, such as a language model. */
export function drafterKindOf({ fields }: ConfigFields): DrafterShape["kind"] | null {
  const names = fields.get("architectures");
  if (!Array.isArray(names)) return null;
  return names.map((name) => architectures.get(name)).find((kind) => kind !== undefined) ?? null;
}

/** Whether a folder holds a drafter rather than a language model. @throws CheckpointError */
export async function isDrafterFolder(folder: Folder): Promise<boolean> {
  return drafterKindOf(await readFields(folder, configFile)) !== null;
}

import { CheckpointError } from "../errors.ts";
import type { ConfigFields } from "./config-fields.ts";
import { parseJsonObject } from "./json.ts";
import type { Folder } from "./source.ts";

export const configFile = "config.json";

/** A JSON file's fields. @throws CheckpointError where it is missing, or not one JSON object */
export async function readFields(folder: Folder, path: string): Promise<ConfigFields> {
  const file = `${folder.name}/${path}`;
  if (!(await folder.has(path))) throw new CheckpointError(folder.name, `has no ${path}`);
  return { file, at: "", fields: parseJsonObject(file, await folder.text(path)) };
}

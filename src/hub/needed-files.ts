import { configFile } from "../checkpoint/config-file.ts";
import { isDrafterFolder } from "../checkpoint/drafter-kind.ts";
import { asFields, parseJsonObject } from "../checkpoint/json.ts";
import type { Folder } from "../checkpoint/source.ts";
import { indexFile, singleFile } from "../checkpoint/tensors.ts";
import { CheckpointError } from "../errors.ts";
import { shown } from "../json.ts";
import { checkFilePath } from "./file-names.ts";

/** What is read of a checkpoint, by path. */
export interface NeededFiles {
  /** All but the weights. */
  readonly texts: readonly string[];
  readonly weights: readonly string[];
  /** Those among them that are not in the folder. */
  readonly missing: readonly string[];
}

/** What models have beside their config; a drafter is given tokens, and reads none of it. */
const tokenizerFile = "tokenizer.json";
const optionalTexts = ["generation_config.json", "tokenizer_config.json", "chat_template.jinja"];

/**
 * Which files of a folder are needed to load it, be it a model's or a drafter's. Of the folder, the config
 * and the index are read.
 * @throws CheckpointError, HubError for an index that names what can't be a file of the folder
 */
export async function neededFiles(folder: Folder): Promise<NeededFiles> {
  if (!(await folder.has(configFile))) {
    return { texts: [configFile], weights: [], missing: [configFile] };
  }
  const required = (await isDrafterFolder(folder)) ? [] : [tokenizerFile];
  const optional = required.length > 0 ? [indexFile, ...optionalTexts] : [indexFile];
  const texts = [configFile, ...(await present(folder, optional)), ...required];
  const weights = texts.includes(indexFile) ? await shardsOf(folder) : [singleFile];
  const wanted = [...texts, ...weights];
  const there = await present(folder, wanted);
  return { texts, weights, missing: wanted.filter((path) => !there.includes(path)) };
}

async function present(folder: Folder, paths: readonly string[]): Promise<string[]> {
  const there = await Promise.all(paths.map((path) => folder.has(path)));
  return paths.filter((_, index) => there[index]);
}

/** The shards that the index names. A file that it doesn't name is never read. */
async function shardsOf(folder: Folder): Promise<string[]> {
  const file = `${folder.name}/${indexFile}`;
  const map = asFields(parseJsonObject(file, await folder.text(indexFile)).get("weight_map"));
  const shards = [...new Set(map?.values())].sort();
  return shards.map((shard) => {
    if (typeof shard !== "string") {
      throw new CheckpointError(file, `weight_map must name files, found ${shown(shard)}`);
    }
    checkFilePath(file, shard);
    return shard;
  });
}

import { existsSync } from "node:fs";
import { basename } from "node:path";
import { InputError } from "../../errors.ts";
import { cachedFolder, findCached } from "../../hub/find-node.ts";
import { Hub } from "../../hub/hub-node.ts";
import { type HubName, hubNameText, parseHubName } from "../../hub/names.ts";
import { cachedRepos } from "../../hub/scan-node.ts";
import { drafterNames, embeddedModel, modelFolder, type OpenOptions } from "../../node.ts";
import type { CliIo } from "../io.ts";
import { pullModel } from "./pull-model.ts";

/** A model that a name or a path means. */
export interface FoundModel {
  readonly folder: string;
  /** As it was asked for, or as its folder is called. */
  readonly name: string;
  /** Where it is from, of a model in the cache. */
  readonly hub: Hub | null;
}

/** What to do about a model of the hub that isn't in the cache. */
export interface FindOptions {
  readonly quiet: boolean;
  /** Pulls it without asking. */
  readonly yes: boolean;
  readonly toOpen: OpenOptions;
}

/**
 * The folder of an embedded model, of a path, or of a model of the hub. A folder that is there goes before
 * a model of the same name.
 * @param whereMissing what stands for a model of the hub that isn't in the cache
 * @throws InputError for a word that names neither; what `whereMissing` throws
 */
async function find(
  model: string,
  whereMissing: (hub: Hub, name: HubName) => Promise<string>,
): Promise<FoundModel> {
  const path = modelFolder(model);
  const isThere = existsSync(path);
  const name = isThere ? null : parseHubName(model);
  if (!isThere && /^[^/\\]+$/.test(model)) {
    throw new InputError(
      `There is no model ${model}: it is neither ${embeddedModel}, which comes along, nor a folder here, and ` +
        "models of the hub are called ORG/NAME.",
    );
  }
  if (!name) return { folder: path, name: basename(path), hub: null };
  const hub = await Hub.open();
  const folder = (await findCached(hub, name)) ?? (await whereMissing(hub, name));
  return { folder, name: hubNameText(name), hub };
}

/** Finds a model that is here. @throws InputError where it would have to be pulled */
export const findHere = (model: string): Promise<FoundModel> => find(model, refuse);

/**
 * Finds a model, and pulls one that isn't in the cache once the user agrees.
 * @throws InputError where that is not to be; HubError
 */
export const findModel = (io: CliIo, model: string, options: FindOptions): Promise<FoundModel> =>
  find(model, async (hub, name) => {
    const { quiet, yes, toOpen } = options;
    if (hub.settings.offline || (!yes && !io.stdin.isTTY)) return await refuse(hub, name);
    return await pullModel(io, hub, name, { quiet, asks: !yes, toOpen });
  });

/** Folders of the cache that are called as drafters of a model of the hub, whoever made them. */
export async function cachedDrafters({ hub, name }: FoundModel): Promise<string[]> {
  if (!hub) return [];
  const names = drafterNames(ownName(name.replace(/@.*/, "")));
  const repos = (await cachedRepos(hub)).filter((repo) => names.includes(ownName(repo)));
  const folders = repos.map((repo) => cachedFolder(hub, { repo, revision: null }));
  return (await Promise.all(folders)).filter((folder) => folder !== null);
}

/**
 * The drafter that a model which is here would be opened with.
 * @throws InputError where one that is named would have to be pulled
 */
export async function drafterHere(
  found: FoundModel,
  { drafter = "auto" }: OpenOptions,
): Promise<Pick<OpenOptions, "drafter" | "drafterFolders">> {
  if (drafter === "none") return { drafter };
  if (drafter !== "auto") return { drafter: (await findHere(drafter)).folder };
  return found.hub ? { drafterFolders: await cachedDrafters(found) } : {};
}

/** A model's name without its maker's. */
const ownName = (repo: string): string => repo.slice(repo.indexOf("/") + 1);

async function refuse({ settings }: Hub, name: HubName): Promise<never> {
  const model = hubNameText(name);
  const missing = `${model} is neither a folder nor a whole model in ${settings.cache}`;
  if (settings.offline) throw new InputError(`${missing}, and HF_HUB_OFFLINE is set.`);
  throw new InputError(`${missing}. Pull it: deltafold pull ${model}`);
}

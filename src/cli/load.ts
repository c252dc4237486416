import type { Engine } from "../engine.ts";
import { type OpenOptions, openEngine } from "../node.ts";
import type { CliIo } from "./io.ts";
import { startProgress } from "./progress.ts";
import { cachedDrafters, type FoundModel, findModel } from "./pull/find.ts";

/** How a model is loaded, beside what its engine is opened with. */
export interface LoadFlags {
  readonly quiet: boolean;
  /** Pulls what is missing without asking. */
  readonly yes: boolean;
}

/**
 * Opens an engine and shows how far it is. A model or drafter of the hub that isn't in the cache is pulled,
 * once the user agrees. Warnings are printed, unless `options` takes them.
 */
export async function loadEngine(
  io: CliIo,
  model: string,
  options: OpenOptions,
  flags: LoadFlags,
): Promise<Engine> {
  const found = await findModel(io, model, { ...flags, toOpen: options });
  const drafter = await drafterOf(io, found, options, flags);
  using progress = startProgress(io, `loading ${found.name}`, flags.quiet);
  return await openEngine(found.folder, {
    onWarning: (message) => io.stderr.write(`warning: ${message}\n`),
    ...options,
    ...drafter,
    name: found.name,
    onProgress: (done, total) => progress.update(done, total),
  });
}

/** Beside a model in the cache stand its other commits: its drafter is another model of the cache. */
async function drafterOf(
  io: CliIo,
  found: FoundModel,
  options: OpenOptions,
  flags: LoadFlags,
): Promise<Pick<OpenOptions, "drafter" | "drafterFolders">> {
  const { drafter = "auto", drafts = true } = options;
  if (drafter === "none" || !drafts) return {};
  if (drafter === "auto") return found.hub ? { drafterFolders: await cachedDrafters(found) } : {};
  return { drafter: (await findModel(io, drafter, { ...flags, toOpen: options })).folder };
}

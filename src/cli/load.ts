import { basename } from "node:path";
import type { Engine } from "../engine.ts";
import { type OpenOptions, openEngine } from "../node.ts";
import type { CliIo } from "./io.ts";
import { startProgress } from "./progress.ts";

/** Opens an engine and shows how far it is. Warnings are printed, unless `options` takes them. */
export async function loadEngine(
  io: CliIo,
  model: string,
  options: OpenOptions,
  quiet: boolean,
): Promise<Engine> {
  using progress = startProgress(io, `loading ${basename(model)}`, quiet);
  return await openEngine(model, {
    onWarning: (message) => io.stderr.write(`warning: ${message}\n`),
    ...options,
    onProgress: (done, total) => progress.update(done, total),
  });
}

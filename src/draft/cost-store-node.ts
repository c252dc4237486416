import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "../cache-folder-node.ts";
import type { CostIdentity } from "./cost-file.ts";
import type { CostStore } from "./cost-store.ts";

/**
 * Changes with every build, and with the processor: their costs are their own. Builds that were installed
 * have the file times of their archive, so the version tells them apart; those made here have a time.
 */
function buildOf(version: string): string {
  const file = fileURLToPath(import.meta.url);
  const builtMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return JSON.stringify([file, version, builtMs, cpus()[0]?.model]);
}

/**
 * One file an identity, in the user's cache folder. A folder that can't be read or written is as good as
 * an empty one.
 * @param version of the package
 */
export function costFiles(
  version: string,
  folder: string = join(cacheFolder(), "deltafold", "costs"),
): CostStore {
  const fileOf = (identity: CostIdentity) => {
    const key = createHash("sha256").update(JSON.stringify(identity)).digest("hex").slice(0, 16);
    return join(folder, `${key}.json`);
  };
  return {
    build: buildOf(version),
    async read(identity) {
      return await readFile(fileOf(identity), "utf8").catch(() => null);
    },
    async write(identity, text) {
      const file = fileOf(identity);
      const part = `${file}.${process.pid}`;
      // A reader never sees half a file.
      await mkdir(folder, { recursive: true })
        .then(() => writeFile(part, text))
        .then(() => rename(part, file))
        .catch(() => {});
    },
  };
}

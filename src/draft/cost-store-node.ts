import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CostIdentity } from "./cost-file.ts";
import type { CostStore } from "./cost-store.ts";

/** Where this system keeps what programs can make again. */
function cacheFolder(): string {
  const { env, platform } = process;
  if (env["XDG_CACHE_HOME"]) return env["XDG_CACHE_HOME"];
  if (platform === "win32") return env["LOCALAPPDATA"] ?? join(homedir(), "AppData", "Local");
  return join(homedir(), platform === "darwin" ? "Library/Caches" : ".cache");
}

/** Changes with every build: its costs are its own. */
function buildOf(): string {
  const file = fileURLToPath(import.meta.url);
  const { mtimeMs, size } = statSync(file, { throwIfNoEntry: false }) ?? { mtimeMs: 0, size: 0 };
  return `${file}:${size}:${mtimeMs}`;
}

/**
 * One file an identity, in the user's cache folder. A folder that can't be read or written is as good as
 * an empty one.
 */
export function costFiles(folder: string = join(cacheFolder(), "deltafold", "costs")): CostStore {
  const fileOf = (identity: CostIdentity) => {
    const key = createHash("sha256").update(JSON.stringify(identity)).digest("hex").slice(0, 16);
    return join(folder, `${key}.json`);
  };
  return {
    build: buildOf(),
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

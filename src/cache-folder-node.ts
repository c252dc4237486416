import { homedir, tmpdir } from "node:os";
import { join } from "node:path";

/** Where this system keeps what programs can make again. */
export function cacheFolder(): string {
  const { env, platform } = process;
  if (env["XDG_CACHE_HOME"]) return env["XDG_CACHE_HOME"];
  if (platform === "win32" && env["LOCALAPPDATA"]) return env["LOCALAPPDATA"];
  const caches = { win32: "AppData/Local", darwin: "Library/Caches" } as Record<string, string>;
  try {
    return join(homedir(), caches[platform] ?? ".cache");
  } catch {
    // A user that the system has no name for, as in some containers.
    return tmpdir();
  }
}

/** Debian's packages, for what tests need. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

export const sources = "/etc/apt/sources.list.d";

export function apt(...args: string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  execFileSync("apt-get", args, { stdio: "ignore", env, timeout: 300_000 });
}

/** The address of the Debian mirror that apt is set to, and the release's name. */
export function mirror(): { readonly url: string; readonly release: string } | null {
  const release = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1];
  const files = readdirSync(sources).map((file) => `${sources}/${file}`);
  for (const file of [...files, "/etc/apt/sources.list"]) {
    if (!existsSync(file)) continue;
    const url = /(?:^URIs:|^deb)\s+(\S+\/debian)\/?(?:\s|$)/m.exec(readFileSync(file, "utf8"))?.[1];
    if (url && release) return { url, release };
  }
  return null;
}

/**
 * Installs a package where that may be (root, Debian) and `isHere` says that it is missing.
 * @param otherwise what to say where it can't be installed
 * @returns whether it is there afterwards
 */
export function install(name: string, isHere: () => boolean, otherwise: string): boolean {
  const mayInstall = existsSync("/etc/debian_version") && process.getuid?.() === 0;
  if (isHere() || !mayInstall) return isHere();
  try {
    apt("update", "-qq");
    apt("install", "-y", "-qq", "--no-install-recommends", name);
  } catch {
    console.log(`${name} could not be installed: ${otherwise}`);
  }
  return isHere();
}

/**
 * Brings the software GPU that the webgpu tests run on: Mesa's lavapipe. Debian 12's own is too old for
 * Dawn, so it comes from the backports of the mirror that the machine uses already. Where this may not
 * be (not root, not Debian) nothing happens, and the tests that need it are reported as skipped.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const icd = "/usr/share/vulkan/icd.d/lvp_icd.json";
const sources = "/etc/apt/sources.list.d";

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

/** Whether the tests may expect a software GPU afterwards. */
export function installLavapipe(): boolean {
  if (process.platform !== "linux" || !existsSync("/etc/debian_version")) return existsSync(icd);
  if (existsSync(icd) && existsSync(`${sources}/deltafold-backports.list`)) return true;
  if (process.getuid?.() !== 0) return existsSync(icd);
  const found = mirror();
  if (!found) return existsSync(icd);
  try {
    const suite = `${found.release}-backports`;
    const line = `deb ${found.url} ${suite} main\n`;
    writeFileSync(`${sources}/deltafold-backports.list`, line);
    apt("update", "-qq");
    apt("install", "-y", "-qq", "--no-install-recommends", "libvulkan1");
    apt("install", "-y", "-qq", "--no-install-recommends", "-t", suite, "mesa-vulkan-drivers");
    return true;
  } catch {
    console.log("lavapipe could not be installed: the webgpu tests will be skipped");
    return false;
  }
}

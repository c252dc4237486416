/**
 * Brings the software GPU that the webgpu tests run on: Mesa's lavapipe. Debian 12's own is too old for
 * Dawn, so it comes from the backports of the mirror that the machine uses already. Where this may not
 * be (not root, not Debian) nothing happens, and the tests that need it are reported as skipped.
 */
import { existsSync, writeFileSync } from "node:fs";
import { apt, mirror, sources } from "./apt.ts";

const icd = "/usr/share/vulkan/icd.d/lvp_icd.json";

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

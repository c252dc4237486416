/** Brings the HAProxy that the test of replicas stands behind: Debian's own, without starting a service. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { apt } from "./install-lavapipe.ts";

const isHere = () => spawnSync("haproxy", ["-v"]).status === 0;

/** Whether it is there afterwards. Where it may not be installed (not root, not Debian), it may be already. */
export function installHaproxy(): boolean {
  const mayInstall = existsSync("/etc/debian_version") && process.getuid?.() === 0;
  if (isHere() || !mayInstall) return isHere();
  try {
    apt("update", "-qq");
    apt("install", "-y", "-qq", "--no-install-recommends", "haproxy");
  } catch {
    console.log("haproxy could not be installed");
  }
  return isHere();
}

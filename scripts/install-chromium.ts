/**
 * Brings the browser that the tests of `deltafold/web` run in, and with it SwiftShader, a second
 * software GPU. Where this may not be (not root, not Debian) nothing happens, and the tests that need
 * them are reported as skipped.
 */
import { existsSync } from "node:fs";
import { apt } from "./install-lavapipe.ts";

const executable = "/usr/bin/chromium";
/** Tells a Vulkan loader of SwiftShader. */
const icd = "/usr/lib/chromium/vk_swiftshader_icd.json";

/** Tells the tests where they are, by DELTAFOLD_CHROMIUM and DELTAFOLD_SWIFTSHADER_ICD. */
export function installChromium(): void {
  const mayInstall = existsSync("/etc/debian_version") && process.getuid?.() === 0;
  if (mayInstall && !existsSync(executable)) {
    try {
      apt("update", "-qq");
      apt("install", "-y", "-qq", "--no-install-recommends", "chromium");
    } catch {
      console.log("chromium could not be installed: the browser tests will be skipped");
    }
  }
  if (existsSync(executable)) process.env["DELTAFOLD_CHROMIUM"] ??= executable;
  if (existsSync(icd)) process.env["DELTAFOLD_SWIFTSHADER_ICD"] ??= icd;
}

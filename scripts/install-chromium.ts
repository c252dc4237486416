/**
 * Brings the browser that the tests of `deltafold/web` run in, and with it SwiftShader, a second
 * software GPU. Where this may not be (not root, not Debian) nothing happens, and the tests that need
 * them are reported as skipped.
 */
import { existsSync } from "node:fs";
import { install } from "./apt.ts";

const executable = "/usr/bin/chromium";
/** Tells a Vulkan loader of SwiftShader. */
const icd = "/usr/lib/chromium/vk_swiftshader_icd.json";

/** Tells the tests where they are, by DELTAFOLD_CHROMIUM and DELTAFOLD_SWIFTSHADER_ICD. */
export function installChromium(): void {
  const isHere = () => existsSync(executable);
  if (install("chromium", isHere, "the browser tests will be skipped"))
    process.env["DELTAFOLD_CHROMIUM"] ??= executable;
  if (existsSync(icd)) process.env["DELTAFOLD_SWIFTSHADER_ICD"] ??= icd;
}

import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { BackendError } from "../../errors.ts";
import { requestAdapter } from "./device.ts";
import type { GpuPlatform } from "./platform.ts";

/** A platform that gives, as Dawn does, the first adapter whose name has what is asked for. */
const platformOf = (...names: string[]): GpuPlatform => ({
  implementation: "listed",
  missingAdapter: "Buy one.",
  adapterNames: async () => names,
  gpu(asked) {
    const at = names.findIndex((name) => name.includes(asked ?? ""));
    return { requestAdapter: async () => (at < 0 ? null : { at }) } as unknown as GPU;
  },
});

const rtx = platformOf("RTX 4090 D", "RTX 4090", "Arc A770", "Arc A770");

test.each([
  [null, 0],
  ["0", 0],
  ["2", 2],
  ["02", 2],
  ["4090", 0],
  ["A7", 2],
  ["Arc A770", 2],
  ["4", 0],
  ["77", 2],
])("the choice %j is adapter %d", async (choice, at) => {
  expect(await requestAdapter(rtx, choice)).toEqual({ at });
});

const all = '0 "RTX 4090 D", 1 "RTX 4090", 2 "Arc A770", 3 "Arc A770"';

test.each([
  ["1", 'WebGPU adapter 1 can\'t be told from adapter 0 by its name, "RTX 4090". Start this where'],
  ["3", 'WebGPU adapter 3 can\'t be told from adapter 2 by its name, "Arc A770". Start this where'],
  ["8", `No WebGPU adapter has "8" in its name. There are: ${all}.`],
  ["5090", `No WebGPU adapter has "5090" in its name. There are: ${all}.`],
])("the choice %j is refused", async (choice, message) => {
  await expect(requestAdapter(rtx, choice)).rejects.toThrow(message);
});

test.each([null, "0", "RTX"])("without adapters %j is no wrong choice", async (choice) => {
  const error = await requestAdapter(platformOf(), choice).catch((caught) => caught);
  expect(error).toBeInstanceOf(BackendError);
  expect(error.message).toBe("There is no WebGPU adapter on this machine. Buy one.");
});

const icd = "/usr/share/vulkan/icd.d/lvp_icd.json";

test.skipIf(!existsSync(icd))("Dawn lists two equal adapters, and gives the first", () => {
  const folder = mkdtempSync(join(tmpdir(), "deltafold-adapters-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const copy = join(folder, "copy.json");
  copyFileSync(icd, copy);
  const drivers = [icd, copy].join(delimiter);
  const main = join(import.meta.dirname, "../../cli/main.ts");
  const doctor = (...args: string[]) =>
    spawnSync(process.execPath, [main, "doctor", "--json", ...args], {
      encoding: "utf8",
      env: { ...process.env, VK_DRIVER_FILES: drivers, VK_ICD_FILENAMES: drivers },
    });
  const [first, second, ...more] = JSON.parse(doctor("--adapter", "0").stdout).webgpu.adapters;
  expect(more).toEqual([]);
  expect(first.notes.join()).not.toContain("must not see");
  expect(second).toEqual({
    ...first,
    notes: [expect.stringMatching(/^adapter 0 is given for this name/), ...first.notes],
  });
  const refused = doctor("--adapter", "1");
  expect(refused.status).toBe(1);
  expect(refused.stderr).toContain("WebGPU adapter 1 can't be told from adapter 0 by its name");
});

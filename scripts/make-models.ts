/**
 * Makes `models/nano` and `models/nano-dflash2`, MLX affine 4-bit in groups of 64, from the bf16
 * originals: `node scripts/make-models.ts [../shared/models]`. Folders that exist are replaced.
 */
import { mkdir, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { convertCheckpoint } from "../src/weights/convert-node.ts";

const source = resolve(process.argv[2] ?? join(import.meta.dirname, "../../shared/models"));
const target = join(import.meta.dirname, "../models");

await mkdir(target, { recursive: true });
for (const name of ["nano", "nano-dflash2"]) {
  const output = join(target, name);
  const made = `${output}.new`;
  // The old folder stays until the new one is whole.
  await rm(made, { recursive: true, force: true });
  await convertCheckpoint(join(source, name), made, { bits: 4, groupSize: 64 });
  await rm(output, { recursive: true, force: true });
  await rename(made, output);
  console.log(`${output} made from ${join(source, name)}`);
}

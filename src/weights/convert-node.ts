import { stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { openFolder } from "../checkpoint/source-node.ts";
import type { ConvertSource } from "./conversion.ts";
import { type ConvertOptions, convertInto, describeConversion } from "./convert.ts";
import type { ConvertSummary } from "./convert-plan.ts";
import { createOutputFolder } from "./output-node.ts";

/**
 * Converts the checkpoint folder or GGUF file `sourcePath` to an MLX-layout affine checkpoint in the new
 * folder `outputPath`, which appears whole or not at all.
 *
 * @throws InputError when `outputPath` exists, and what `convertInto` throws
 */
export function convertCheckpoint(
  sourcePath: string,
  outputPath: string,
  options: ConvertOptions,
): Promise<ConvertSummary> {
  return withSource(sourcePath, async (source) =>
    convertInto(source, await createOutputFolder(outputPath), options),
  );
}

/** What `convertCheckpoint` would write. @throws as it does, but for `outputPath` */
export function planConversion(
  sourcePath: string,
  options: ConvertOptions,
): Promise<ConvertSummary> {
  return withSource(sourcePath, (source) => describeConversion(source, options));
}

async function withSource<T>(
  path: string,
  work: (source: ConvertSource) => Promise<T>,
): Promise<T> {
  const isFile = await stat(path).then(
    (stats) => stats.isFile(),
    () => false,
  );
  // What isn't there is told as a missing folder.
  if (!isFile) return await work(await openFolder(path));
  const file = await (await openFolder(dirname(path))).open(basename(path));
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

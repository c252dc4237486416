import { openFolder } from "../checkpoint/source-node.ts";
import { type ConvertOptions, type ConvertResult, convertInto } from "./convert.ts";
import { createOutputFolder } from "./output-node.ts";

/**
 * Converts the checkpoint in `sourcePath` to an MLX-layout affine checkpoint in the new folder
 * `outputPath`, which appears whole or not at all.
 *
 * @throws InputError when `outputPath` exists, and what `convertInto` throws
 */
export async function convertCheckpoint(
  sourcePath: string,
  outputPath: string,
  options: ConvertOptions,
): Promise<ConvertResult> {
  const source = await openFolder(sourcePath);
  return await convertInto(source, await createOutputFolder(outputPath), options);
}

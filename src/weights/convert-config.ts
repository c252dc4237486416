import { asFields } from "../checkpoint/json.ts";
import type { AffineFormat } from "./affine.ts";
import type { ConvertJob } from "./convert-jobs.ts";

const quantizationFields = ["quantization", "quantization_config"];

/**
 * The source's config in its own form, with MLX's two quantisation objects: the default format, and
 * each module that differs from it. What the source said of its own quantisation goes.
 */
export function quantizedConfig(
  config: ReadonlyMap<string, unknown>,
  jobs: readonly ConvertJob[],
  { bits, groupSize }: AffineFormat,
): unknown {
  const differing = jobs.flatMap(({ matrix }): [string, unknown][] => {
    if (matrix === null || (matrix.fate === "indivisible" && matrix.format === null)) return [];
    const { module, format } = matrix;
    if (format === null) return [[module, false]];
    if (format.bits === bits && format.groupSize === groupSize) return [];
    return [[module, { group_size: format.groupSize, bits: format.bits }]];
  });
  const quantization = Object.fromEntries([
    ["group_size", groupSize],
    ["bits", bits],
    ["mode", "affine"],
    ...differing,
  ]);
  return Object.fromEntries([
    ...[...config].map(([name, value]) => [name, withoutQuantization(name, value)]),
    ...quantizationFields.map((name) => [name, quantization]),
  ]);
}

/** Some files say it in `text_config`, where it would contradict what is at the top. */
function withoutQuantization(name: string, value: unknown): unknown {
  const fields = name === "text_config" ? asFields(value) : null;
  if (fields === null) return value;
  return Object.fromEntries([...fields].filter(([key]) => !quantizationFields.includes(key)));
}

import {
  type ConfigFields,
  fail,
  objectField,
  optionalField,
  requiredField,
  size,
  text,
} from "./config-fields.ts";
import { bareName } from "./names.ts";

interface QuantizationFormat {
  readonly bits: number;
  /** Columns that share a scale and a bias. */
  readonly groupSize: number;
}

/** MLX's `quantization` object. */
export interface QuantizationConfig extends QuantizationFormat {
  /** Modules that differ from the default, by path without the checkpoint's prefix. */
  readonly overrides: ReadonlyMap<string, QuantizationFormat>;
}

/**
 * Reads MLX affine quantisation; null for a checkpoint of floats.
 *
 * @param pathOf a module's path in our own words; null for what is no part of the model
 * @throws CheckpointError naming a method or mode that is not read
 */
export function readQuantization(
  textConfig: ConfigFields | null,
  config: ConfigFields,
  pathOf: (name: string) => string | null = bareName,
): QuantizationConfig | null {
  const found = [config, textConfig].flatMap((level) =>
    level === null
      ? []
      : [objectField(level, "quantization"), objectField(level, "quantization_config")],
  );
  const objects = found.filter((object) => object !== null);
  for (const object of objects) {
    const method = optionalField([object], "quant_method", text);
    if (method !== undefined) {
      fail(
        object,
        "quant_method",
        "only MLX affine quantisation and plain floats are read",
        method,
      );
    }
  }
  const [quantization] = objects;
  if (quantization === undefined) return null;
  checkMode(quantization);
  return { ...readFormat([quantization]), overrides: readOverrides(quantization, pathOf) };
}

function readOverrides(
  quantization: ConfigFields,
  pathOf: (name: string) => string | null,
): ReadonlyMap<string, QuantizationFormat> {
  const overrides = new Map<string, QuantizationFormat>();
  for (const [key, value] of quantization.fields) {
    const path = pathOf(key);
    // `true` and `false` say whether a module is quantised, which its tensors say better.
    if (path === null || typeof value === "boolean") continue;
    const override = objectField(quantization, key);
    if (override === null) continue;
    checkMode(override);
    overrides.set(path, readFormat([override, quantization]));
  }
  return overrides;
}

function readFormat(levels: readonly ConfigFields[]): QuantizationFormat {
  return {
    bits: requiredField(levels, "bits", size),
    groupSize: requiredField(levels, "group_size", size),
  };
}

function checkMode(quantization: ConfigFields): void {
  const mode = optionalField([quantization], "mode", text) ?? "affine";
  if (mode !== "affine") fail(quantization, "mode", "only affine is read", mode);
}

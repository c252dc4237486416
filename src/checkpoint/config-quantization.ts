import { z } from "zod";
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

/** Hugging Face's block-scaled fp8: so many rows and columns of e4m3 values share a scale. */
export interface Fp8Blocks {
  readonly rows: number;
  readonly cols: number;
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
  const objects = quantizationObjects(textConfig, config);
  const method = methodOf(objects);
  if (method !== null) {
    const detail = "only MLX affine quantisation, fp8 of models and plain floats are read";
    fail(method.object, "quant_method", detail, method.name);
  }
  const [quantization] = objects;
  if (quantization === undefined) return null;
  checkMode(quantization);
  return { ...readFormat([quantization]), overrides: readOverrides(quantization, pathOf) };
}

/**
 * Reads the blocks of an fp8 checkpoint; null for any other.
 *
 * @throws CheckpointError for another fp8 than e4m3 in blocks
 */
export function readFp8(textConfig: ConfigFields | null, config: ConfigFields): Fp8Blocks | null {
  const method = methodOf(quantizationObjects(textConfig, config));
  if (method?.name !== "fp8") return null;
  const { object } = method;
  const kind = optionalField([object], "fmt", text) ?? "e4m3";
  if (kind !== "e4m3") fail(object, "fmt", "only e4m3 is read", kind);
  const [rows, cols] = requiredField([object], "weight_block_size", z.tuple([size, size]));
  return { rows, cols };
}

/** Where configs say how they are quantised: at the top, or within `text_config`. */
function quantizationObjects(
  textConfig: ConfigFields | null,
  config: ConfigFields,
): readonly ConfigFields[] {
  const found = [config, textConfig].flatMap((level) =>
    level === null
      ? []
      : [objectField(level, "quantization"), objectField(level, "quantization_config")],
  );
  return found.filter((object) => object !== null);
}

/** The method that Hugging Face's configs name and MLX's don't. */
function methodOf(
  objects: readonly ConfigFields[],
): { readonly object: ConfigFields; readonly name: string } | null {
  for (const object of objects) {
    const name = optionalField([object], "quant_method", text);
    if (name !== undefined) return { object, name };
  }
  return null;
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

import { z } from "zod";
import { CheckpointError } from "../errors.ts";
import { shown } from "../json.ts";
import { asFields } from "./json.ts";

/** A config file's object, with the file's name for errors. */
export interface ConfigFields {
  readonly file: string;
  /** Where in the file this object stands, as a prefix of its fields: `text_config.`. */
  readonly at: string;
  readonly fields: ReadonlyMap<string, unknown>;
}

/** Objects of which the first to have a field decides it. */
export type Levels = readonly (ConfigFields | null)[];

/** Larger sizes than any model has; products of two stay exact. */
const sizeMax = 2 ** 26;

export const size: z.ZodType<number> = z.int().min(1).max(sizeMax);
export const positive: z.ZodType<number> = z.number().positive();
export const flag: z.ZodType<boolean> = z.boolean();
export const text: z.ZodType<string> = z.string();

/** A nested object, or null when the field is absent or null. */
export function objectField(config: ConfigFields, name: string): ConfigFields | null {
  const value = config.fields.get(name);
  if (value === undefined || value === null) return null;
  const fields = asFields(value);
  if (fields === null) return fail(config, name, "must be an object", value);
  return { file: config.file, at: `${config.at}${name}.`, fields };
}

/**
 * A field that the first of the given objects to have it decides; undefined when none has it or it
 * is null there.
 *
 * @throws CheckpointError naming file, field and value when it has another type
 */
export function optionalField<T>(levels: Levels, name: string, type: z.ZodType<T>): T | undefined {
  const level = levels.find((candidate) => isSet(candidate?.fields.get(name)));
  if (level === undefined || level === null) return undefined;
  const value = level.fields.get(name);
  const parsed = type.safeParse(value);
  if (parsed.success) return parsed.data;
  return fail(level, name, parsed.error.issues[0]?.message ?? "is not valid", value);
}

/** The same, where absence is an error too. */
export function requiredField<T>(levels: Levels, name: string, type: z.ZodType<T>): T {
  const value = optionalField(levels, name, type);
  if (value !== undefined) return value;
  const first = levels.find((level) => level !== null);
  throw new CheckpointError(first?.file ?? "config.json", `${first?.at ?? ""}${name} is missing`);
}

/** The object that decides a field, for error messages. */
export function holder(levels: Levels, name: string): ConfigFields {
  const present = levels.filter((level) => level !== null);
  return present.find((level) => isSet(level.fields.get(name))) ?? present[0]!;
}

/** @throws CheckpointError unless one size is a multiple of another */
export function checkMultiple(levels: Levels, name: string, divisorName: string): void {
  const value = requiredField(levels, name, size);
  const divisor = requiredField(levels, divisorName, size);
  if (value % divisor === 0) return;
  fail(holder(levels, name), name, `must be a multiple of ${divisorName} (${divisor})`, value);
}

/** @throws CheckpointError for another activation than SiLU, and for attention with biases */
export function checkPlainLayers(levels: Levels): void {
  const act = optionalField(levels, "hidden_act", text) ?? "silu";
  if (act !== "silu") fail(holder(levels, "hidden_act"), "hidden_act", "must be silu", act);
  if (optionalField(levels, "attention_bias", flag) === true) {
    fail(holder(levels, "attention_bias"), "attention_bias", "must be false", true);
  }
}

export function fail(config: ConfigFields, name: string, detail: string, value: unknown): never {
  throw new CheckpointError(config.file, `${config.at}${name}: ${detail}, found ${shown(value)}`);
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

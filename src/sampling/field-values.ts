/** What the checks of request fields share. Values are as they came, from JSON or a caller. */
import { InputError } from "../errors.ts";

/** @throws InputError naming the field */
export function finite(value: unknown, param: string): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new InputError(`${param} must be a finite number, not ${show(value)}.`, param);
}

/**
 * A number from `min` to `max`.
 * @throws InputError naming the field
 */
export function between(value: unknown, min: number, max: number, param: string): number {
  const number = finite(value, param);
  if (number >= min && number <= max) return number;
  throw new InputError(`${param} must be between ${min} and ${max}, not ${number}.`, param);
}

/** A value for an error message; also those that JSON doesn't have. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "object") return Array.isArray(value) ? "an array" : "an object";
  return String(value);
}

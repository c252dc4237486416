import { CheckpointError } from "../errors.ts";

/** A JSON object, as far as a value can be known to be one. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @throws CheckpointError naming the file when it doesn't hold a JSON object. */
export function parseJsonObject(text: string, fileName: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw new CheckpointError(fileName, `not JSON: ${detail}`, cause);
  }
  if (!isRecord(value)) throw new CheckpointError(fileName, "not a JSON object");
  return value;
}

/** An own property; keys that come from a request or a model must not reach a prototype. */
export function ownValue(record: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

import { CheckpointError, messageOf } from "../errors.ts";
import { isRecord, nestsWithin, shown } from "../json.ts";
import { jsonDepthMax } from "../limits.ts";

/**
 * Parses a JSON object from a file. `JSON.parse` lets the last of two equal keys win, so that two
 * readers can see two files in one; equal keys are refused here.
 *
 * @throws CheckpointError for anything that is not one object with unique keys
 */
export function parseJsonObject(file: string, text: string): ReadonlyMap<string, unknown> {
  const record = parseJsonRecord(file, text);
  checkKeys(file, text);
  return new Map(Object.entries(record));
}

/**
 * The same as a plain object and without the look at its keys, which takes long where a vocabulary
 * makes hundreds of thousands of them.
 *
 * @throws CheckpointError for anything that is not one object
 */
export function parseJsonRecord(file: string, text: string): Record<string, unknown> {
  if (!nestsWithin(text, jsonDepthMax)) {
    throw new CheckpointError(file, `is nested deeper than ${jsonDepthMax} levels`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const detail = messageOf(cause);
    throw new CheckpointError(file, `is not valid JSON: ${detail.slice(0, 200)}`, cause);
  }
  if (!isRecord(value)) throw new CheckpointError(file, "is not a JSON object");
  return value;
}

/** A JSON object as a map, which no key can pollute; null for any other value. */
export function asFields(value: unknown): ReadonlyMap<string, unknown> | null {
  return isRecord(value) ? new Map(Object.entries(value)) : null;
}

/** Walks text that is known to be valid JSON, once, and refuses equal keys. */
function checkKeys(file: string, text: string): void {
  const objects: (Set<string> | null)[] = [];
  let lastString = "";
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (char === '"') {
      const end = stringEnd(text, i);
      lastString = text.slice(i, end + 1);
      i = end;
    } else if (char === "{" || char === "[") {
      objects.push(char === "{" ? new Set() : null);
    } else if (char === "}" || char === "]") {
      objects.pop();
    } else if (char === ":") {
      const key: string = JSON.parse(lastString);
      const keys = objects.at(-1);
      if (keys?.has(key)) throw new CheckpointError(file, `has the key ${shown(key)} twice`);
      keys?.add(key);
    }
  }
}

/** The place of the quote that closes the string opened at `start`. */
function stringEnd(text: string, start: number): number {
  let i = start + 1;
  while (text[i] !== '"') i += text[i] === "\\" ? 2 : 1;
  return i;
}

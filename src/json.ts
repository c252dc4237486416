/** What every reader of JSON needs, whether it came from a file or a request. Imports nothing. */

/** A JSON object, as far as a value can be known to be one. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An own property; keys that come from a request or a model must not reach a prototype. */
export function ownValue(record: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/**
 * Whether JSON text opens at most `levels` brackets at once. To be asked before parsing, which takes
 * seconds for millions of brackets.
 */
export const nestsWithin = (text: string, levels: number): boolean =>
  outgrown(text, levels, Number.POSITIVE_INFINITY) === null;

/**
 * What JSON text has too many of: brackets that are open at once, or commas and colons between its values
 * and keys. Null: neither. To be asked before parsing.
 */
export function outgrown(
  text: string,
  levels: number,
  separators: number,
): "levels" | "separators" | null {
  let depth = 0;
  let separated = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (letter === '"') quoted = !quoted;
    else if (quoted && letter === "\\") at++;
    else if (quoted) continue;
    else if (letter === "[" || letter === "{") depth++;
    else if (letter === "]" || letter === "}") depth--;
    else if (letter === "," || letter === ":") separated++;
    if (depth > levels) return "levels";
    if (separated > separators) return "separators";
  }
  return null;
}

const shownCharsMax = 80;

/** A value that came as JSON, for an error message: as it is written, cut where it is long. */
export function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  // JSON.stringify writes the Infinity that 1e999 becomes as null.
  const text = typeof value === "number" ? String(value) : JSON.stringify(value);
  return text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text;
}

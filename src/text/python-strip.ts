/** What Python's str.strip takes: JavaScript's trim differs in U+001C–1F, U+0085 and U+FEFF. */
const whitespace =
  "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007" +
  "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000";

/**
 * A text without the characters at its ends, which Jinja's rstrip("\n") names.
 * @param characters those to take; white space where it is no text
 * @param side which ends
 */
export function pythonStrip(
  value: unknown,
  characters: unknown,
  side: "strip" | "lstrip" | "rstrip",
): string {
  const text = value === undefined ? "" : String(value);
  const units = typeof characters === "string" ? characters : whitespace;
  let start = 0;
  let end = text.length;
  if (side !== "rstrip") while (start < end && units.includes(text[start]!)) start++;
  if (side !== "lstrip") while (end > start && units.includes(text[end - 1]!)) end--;
  return text.slice(start, end);
}

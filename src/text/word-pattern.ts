/** What is read at once of an Oniguruma pattern: an escape, a group's opening, or a character. */
const parts = /\\[pP]\{\w+\}|\\.|\(\?(?:i:|[:=!])?|&&|[\s\S]/gu;

/** Escapes that mean something else in JavaScript, where `\s` has U+FEFF and lacks U+0085. */
const otherEscapes: ReadonlyMap<string, string> = new Map([
  ["\\s", "\\p{White_Space}"],
  ["\\S", "\\P{White_Space}"],
]);
/** Escapes that mean the same: properties, line ends and tabs, and punctuation. */
const sameEscapes = /^\\(?:[pP]\{|[nrt]$|[^\p{L}\p{N}]$)/u;
/** Outside of classes: what would match otherwise in JavaScript, or isn't there. */
const unlike: ReadonlySet<string> = new Set([".", "^", "$", "(?"]);
/** Letters beyond ASCII that are one of ASCII in another case (Unicode's CaseFolding.txt). */
const otherCases: ReadonlyMap<string, string> = new Map([
  ["k", "\u212a"],
  ["s", "\u017f"],
]);

/**
 * A pre-tokenizer's regex, which tokenizer.json has in Oniguruma's syntax, with the flags g and u.
 * Known is what patterns of words are made of: classes, properties, groups, look-aheads,
 * alternatives, repeats, and groups that ignore case.
 * @throws SyntaxError for anything else
 */
export function wordPattern(source: string): RegExp {
  let translated = "";
  let inClass = false;
  /** Whether each open group ignores case, the innermost first. */
  const ignoreCase = [false];
  for (const [part] of source.matchAll(parts)) {
    if (part.startsWith("\\")) {
      translated += escaped(part);
    } else if (inClass) {
      // Classes within classes, and their intersections.
      if (part === "[" || part === "&&") fail(part);
      translated += part;
      inClass = part !== "]";
    } else if (unlike.has(part) || (part === "[" && ignoreCase[0])) {
      fail(part);
    } else if (part.startsWith("(")) {
      ignoreCase.unshift(ignoreCase[0] || part === "(?i:");
      translated += part === "(?i:" ? "(?:" : part;
    } else {
      inClass = part === "[";
      translated += ignoreCase[0] ? inAnyCase(part) : part;
      if (part === ")") ignoreCase.shift();
    }
  }
  return new RegExp(translated, "gu");
}

function escaped(part: string): string {
  return otherEscapes.get(part) ?? (sameEscapes.test(part) ? part : fail(part));
}

/** A class of a letter's cases; any other character as it is. */
function inAnyCase(letter: string): string {
  const lower = letter.toLowerCase();
  const upper = letter.toUpperCase();
  return lower === upper ? letter : `[${lower}${upper}${otherCases.get(lower) ?? ""}]`;
}

function fail(part: string): never {
  throw new SyntaxError(`${part} is not known there`);
}

import { type CodeSet, codesOf, without } from "./code-points.ts";
import { type Expression, either, oneOf, type Rules, rule, sequence, text } from "./expressions.ts";

/**
 * Adds rules for texts in which none of some words stands, and returns the first of them.
 * @param name what the rules' names begin with
 * @param words none of them empty
 * @param letters what the texts are made of
 * @param others what may stand beside letters; no word goes on over it
 * @param before what stands before the text: a word may not begin there either
 */
export function avoiding(
  rules: Rules,
  name: string,
  words: readonly string[],
  letters: CodeSet,
  others: readonly Expression[] = [],
  before = "",
): Expression {
  const starts = new Set(words.flatMap((each) => prefixes(each)));
  /** The longest end of a text that begins a word: all that matters of what was read. */
  const endOf = (read: string): string => {
    let end = read;
    while (!starts.has(end)) end = end.slice(1);
    return end;
  };
  const names = new Map(Array.from(starts, (start, index) => [start, `${name}.${index}`]));
  const alphabet = [...new Set(words.join(""))];
  const plain = without(letters, codesOf(alphabet.join("")));
  for (const start of starts) {
    const options = alphabet
      .filter((letter) => !words.some((each) => (start + letter).endsWith(each)))
      .map((letter) => sequence(text(letter), rule(names.get(endOf(start + letter))!)));
    const afresh = sequence(either(oneOf(plain), ...others), rule(names.get("")!));
    rules.set(names.get(start)!, either(text(""), afresh, ...options));
  }
  return rule(names.get(endOf(before))!);
}

/** Every proper beginning of a word, the empty one first. */
const prefixes = (word: string): string[] =>
  Array.from({ length: word.length }, (_, length) => word.slice(0, length));

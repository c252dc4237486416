import { expect, test } from "vitest";
import { wordPattern } from "./word-pattern.ts";

const wordsOf = (source: string, text: string) => text.match(wordPattern(source)) ?? [];

test("white space is Unicode's", () => {
  const text = "a\u0085b\u00a0c\ufeffd\u180ee\u200bf\u3000g\u001ch";
  expect(wordsOf("\\S+", text)).toEqual(["a", "b", "c\ufeffd\u180ee\u200bf", "g\u001ch"]);
  expect(wordsOf("[^\\s]+", text)).toEqual(wordsOf("\\S+", text));
  expect(wordsOf("[\\S]+", text)).toEqual(wordsOf("\\S+", text));
});

test("groups that ignore case do so with all cases of a letter, and only there", () => {
  expect(wordsOf("(?i:'s|'Ll)x|y", "'sx 'Sx 'lLx 'sX 'ſx Y y")).toEqual([
    "'sx",
    "'Sx",
    "'lLx",
    "'ſx",
    "y",
  ]);
  expect(wordsOf("(?i:k(?:a|b))a", "kaa KBa \u212aAa KBA")).toEqual(["kaa", "KBa", "\u212aAa"]);
  expect(wordsOf("(?i:\\r)", "\r R r")).toEqual(["\r"]);
});

test("classes, repeats, look-aheads and escapes are JavaScript's", () => {
  expect(wordsOf("[(?.^$]{2}|\\.\\[", "(?.^ .[")).toEqual(["(?", ".^", ".["]);
  expect(wordsOf("\\p{N}{1,3}(?=\\p{N}{3})|\\P{L}+?", "1234567a")).toEqual([
    "123",
    "4",
    "5",
    "6",
    "7",
  ]);
  expect(wordsOf("a(?!b)", "abaa")).toEqual(["a", "a"]);
  expect(wordsOf("[a&]+&&", "a&a&&")).toEqual(["a&a&&"]);
});

test.each([
  ["\\d", "a digit, Unicode's in one and ASCII's in the other"],
  ["\\w+", "a letter"],
  ["\\b", "a word's edge"],
  ["\\A", "the start"],
  ["\\x41", "a code"],
  ["\\1", "what was found before"],
  [".", "any character but line ends, and those differ"],
  ["^a", "a line's start"],
  ["a$", "a line's end"],
  ["(?<=a)b", "a look-behind"],
  ["(?>a)", "a group without a way back"],
  ["(?i)a", "a switch"],
  ["[[:alpha:]]", "a class in a class"],
  ["[a[b]]", "a class in a class"],
  ["[a&&b]", "an intersection"],
  ["(?i:[a-z])", "a class in any case"],
  ["a++", "a repeat without a way back"],
  ["a{,3}", "a repeat without a least"],
  ["\\p{Han}", "a script by its bare name"],
  ["(a", "a group without an end"],
  ["a\\", "half an escape"],
])("%s is refused: %s", (source) => {
  expect(() => wordPattern(source)).toThrow(SyntaxError);
});

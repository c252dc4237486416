import { expect, test } from "vitest";
import { InputError } from "../errors.ts";
import { automatonOf, Chance, readBy } from "./grammar.cases.ts";
import { readRegex, searched, whole } from "./regex.ts";

/** Patterns, and what texts are made of that may match them. */
const patterns: readonly (readonly [pattern: string, pieces: string])[] = [
  ["abc|de?", "abcde"],
  ["a{2}b{1,3}c{2,}", "aabc"],
  ["(a|b(c|d))*e+?", "abcde"],
  ["[a-c]+[^a-c\\n]?", "abd\n"],
  ["\\d{2}-\\w\\W", "1-_é"],
  ["\\s\\S\\D", "1- é\u00a0"],
  ["(?:ab)+(?<name>c)(?P<other>d)?", "abcd"],
  [".{2}\\.", "a.\n\r\u2028"],
  ["[\\d_-]+[\\]\\\\^]", "1_-]\\^"],
  ["\\x41\\u0042\\u{43}\\t?", "ABC\t"],
  ["é[α-ω]*漢?", "éαωΑ漢"],
  ["a{,}|{a}|a{x}", "a{},x"],
  ["()|(|b)c", "bc"],
  ["[^]a", "a\nb"],
  ["^a$|^b|c$", "abc"],
  ["\\/\\$\\[\\u{1f600}?", "/$[😀"],
];

test.each(patterns)("%s means what it means in JavaScript", (pattern, pieces) => {
  const script = pattern.replaceAll("?P<", "?<");
  const bare = script.replaceAll("^a$|^b|c$", "a|b|c");
  const flags = script.includes("\\u{") ? "u" : "";
  const own = automatonOf(new Map([["root", whole(readRegex(pattern))]]));
  const around = automatonOf(new Map([["root", searched(readRegex(pattern))]]));
  const chance = new Chance(1);
  let matches = 0;
  const entire = new RegExp(`^(?:${bare})$`, flags);
  const anywhere = new RegExp(script, flags);
  for (let round = 0; round < 2000; round++) {
    const letters = Array.from({ length: chance.below(9) }, () => chance.pick(Array.from(pieces)));
    const written = letters.join("");
    const inside = anywhere.test(written);
    expect(readBy(own, written) === "whole", written).toBe(entire.test(written));
    expect(readBy(around, written) === "whole", written).toBe(inside);
    if (inside) matches++;
  }
  expect(matches).toBeGreaterThan(5);
});

test.each([
  ["a**", "repeats what is repeated already, at character 4"],
  ["a{2}{3}", "repeats what is repeated already, at character 8"],
  ["a++", "repeats what is repeated already"],
  ["*a", "repeats nothing"],
  ["(a", "has a group that isn't closed"],
  ["a)", "closes a group that isn't open"],
  ["[a", "ends too early"],
  ["a\\", "ends too early"],
  ["[b-a]", 'has the range "b-a", which is out of order'],
  ["[a-\\d]", "has a range of characters that ends in a class"],
  ["[[:alpha:]]", "has a POSIX class"],
  ["a{3,2}", "repeats fewer times at most than at least"],
  ["a{,2}", "doesn't say how often at least"],
  ["a{10001}", "repeats more than 10000 times"],
  ["a{1,99999999999999999999}", "repeats more than 10000 times"],
  ["(?=a)b", "looks around or sets flags"],
  ["(?<!a)b", "looks around or sets flags"],
  ["(?i)a", "looks around or sets flags"],
  ["(?P=name)", "looks around or sets flags"],
  ["(a)\\1", "refers back"],
  ["\\bword", "looks at what is around it"],
  ["\\p{L}", "has a class of Unicode's"],
  ["\\q", "has the unknown escape"],
  ["\\u12", "ends too early"],
  ["\\xzz", 'has the code "zz"'],
  ["\\ud800", "has half a surrogate pair"],
  ["\ud800", "has half a surrogate pair"],
  ["a^b", "has a ^ that isn't at the beginning"],
  ["a$b", "goes on behind its end"],
  ["(a$)", "has a $ inside of a group"],
  ["(".repeat(65), "nests deeper than 64 levels"],
  ["a".repeat(8193), "has 8193 characters; 8192 are the most"],
])("refuses %s", (pattern, message) => {
  expect(() => readRegex(pattern)).toThrow(InputError);
  expect(() => readRegex(pattern)).toThrow(message);
});

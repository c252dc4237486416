import { expect, test } from "vitest";
import { InputError } from "../errors.ts";
import { readEbnf } from "./ebnf.ts";
import { automatonOf, readBy } from "./grammar.cases.ts";

const sums = `
# Sums of numbers, over several lines.
root ::= term ("+" term)*   # at least one
term ::= number
       | "(" root ")"
number::=[1-9][0-9]*|"0"`;

test.each([
  [sums, ["1+20+(3+0)", "0", "((1))"], ["", "01", "1+", "(1", "1)"]],
  ['root ::= "a" b\nb ::= "x" | "y" root', ["ax", "ayax"], ["a", "ay"]],
  ['root ::= "\\"\\\\\\n\\t\\u00e9\\U0001f600\\x41"', ['"\\\n\té😀A'], ['"']],
  ["root ::= [^\\n\\]a-c-]{2,3} .", ["xyz", "wxy\n"], ["xy", "x]z", "-xy", "ab"]],
  ['root ::= ("a" | "b"){2} "c"+ ""', ["abc", "bbcc"], ["ac", "ab", "abac"]],
  ['root ::= root "a" | "b"', ["b", "baa"], ["a", "bb"]],
  ["root ::= two-parts_2 | \ntwo-parts_2 ::= [x]", ["x", ""], ["xx"]],
  ['root ::= (\n"a"\n\n| "b" # one\n)\n?', ["a", "b", ""], ["ab"]],
  ["root ::= [a] {2} [b] ?", ["aa", "aab"], ["a", "ab"]],
])("%s", (grammar, right, wrong) => {
  const automaton = automatonOf(readEbnf(grammar));
  for (const text of right) expect(readBy(automaton, text), text).toBe("whole");
  for (const text of wrong) expect(readBy(automaton, text), text).not.toBe("whole");
});

test.each([
  ["", "The grammar has no rule of the name root."],
  ['start ::= "a"', "The grammar has no rule of the name root."],
  ["root ::= nope", 'The grammar names the rule "nope", which it doesn\'t have.'],
  ['root ::= "a"\nroot ::= "b"', 'has the rule "root" twice'],
  ['root = "a"', "has something that is no rule, at character 1"],
  ['root ::= "a', "ends too early"],
  ["root ::= 'a'", "has \"'\" where a rule's parts stand"],
  ['root ::= ("a"', "has a group that isn't closed"],
  ['root ::= "a")', "has something that is no rule"],
  ['root ::= "\\d"', "has a class inside of quotes"],
  ['root ::= "a" (="b")', 'has "=" where a rule\'s parts stand'],
  ['root ::= "a"* ?', "repeats what is repeated already"],
  [`root ::= ${"(".repeat(65)}`, "nests deeper than 64 levels"],
  ['root ::= "a"{20000}', "repeats more than 10000 times"],
  [`root ::= "${"a".repeat(65_536)}"`, "has 65547 characters; 65536 are the most"],
  ['root ::= "\ud800"', "has half a surrogate pair"],
])("refuses %s", (grammar, message) => {
  expect(() => readEbnf(grammar)).toThrow(InputError);
  expect(() => readEbnf(grammar)).toThrow(message);
});

import { expect, test } from "vitest";
import { avoiding } from "./avoid.ts";
import { codesOf } from "./code-points.ts";
import { type Rules, sequence, text } from "./expressions.ts";
import { automatonOf, Chance, readBy } from "./grammar.cases.ts";

const words = ["</a>", "\n<b", "\n</c>\n</d>"];
const letters = codesOf("abcd</>\nx");

test.each(["", "\n", "x\n<"])("avoids the words in texts behind %j, and nothing else", (before) => {
  const rules: Rules = new Map();
  rules.set("root", avoiding(rules, "free", words, letters, [], before));
  const automaton = automatonOf(rules);
  const chance = new Chance(3);
  const pieces = [...words.flatMap((word) => [word, word.slice(0, -1), word.slice(1)]), "x", "<"];
  let avoided = 0;
  for (let round = 0; round < 3000; round++) {
    const written = Array.from({ length: chance.below(6) }, () => chance.pick(pieces)).join("");
    const free = !words.some((word) => (before + written).includes(word));
    expect(readBy(automaton, written) === "whole", JSON.stringify(written)).toBe(free);
    if (!free) avoided++;
  }
  expect(avoided).toBeGreaterThan(500);
});

test("no word goes on over what stands beside letters", () => {
  const rules: Rules = new Map();
  const escaped = sequence(text("\\"), text("<"));
  rules.set("root", avoiding(rules, "free", ["<b"], codesOf("b<"), [escaped]));
  const automaton = automatonOf(rules);
  expect(readBy(automaton, "<<\\<b<\\<bb")).toBe("whole");
  expect(readBy(automaton, "\\<<b")).toBe(3);
});

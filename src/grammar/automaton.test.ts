import { expect, test } from "vitest";
import { codesOf } from "./code-points.ts";
import {
  type Expression,
  either,
  many,
  oneOf,
  type Rules,
  repeat,
  rule,
  sequence,
  text,
} from "./expressions.ts";
import { automatonOf, Chance, readBy } from "./grammar.cases.ts";

/** Where rules can end that begin at each place of a text: by growing sets until none grows. */
function endsIn(rules: Rules, written: string): Map<string, Set<number>[]> {
  const ends = new Map(
    Array.from(rules.keys(), (name) => [
      name,
      Array.from({ length: written.length + 1 }, () => new Set<number>()),
    ]),
  );
  const from = (expression: Expression, start: number): Set<number> => {
    switch (expression.kind) {
      case "text":
        return new Set(
          written.startsWith(expression.text, start) ? [start + expression.text.length] : [],
        );
      case "set": {
        const code = written.codePointAt(start) ?? -1;
        const inside = expression.set.some(([first, last]) => first <= code && code <= last);
        return new Set(inside ? [start + 1] : []);
      }
      case "sequence": {
        let places = [start];
        for (const part of expression.parts) {
          places = [...new Set(places.flatMap((place) => [...from(part, place)]))];
        }
        return new Set(places);
      }
      case "either":
        return new Set(expression.options.flatMap((option) => [...from(option, start)]));
      case "repeat": {
        const found = new Set<number>();
        let places = new Set([start]);
        const most = expression.most ?? expression.least + written.length + 1;
        for (let count = 0; count <= most; count++) {
          if (count >= expression.least) for (const place of places) found.add(place);
          places = new Set([...places].flatMap((place) => [...from(expression.body, place)]));
        }
        return found;
      }
      case "rule":
        return new Set(ends.get(expression.name)![start]);
    }
  };
  for (let grew = true; grew; ) {
    grew = false;
    for (const [name, expression] of rules) {
      for (let start = 0; start <= written.length; start++) {
        const known = ends.get(name)![start]!;
        for (const end of from(expression, start)) {
          if (known.has(end)) continue;
          known.add(end);
          grew = true;
        }
      }
    }
  }
  return ends;
}

const names = ["root", "one", "two"];

function randomExpression(chance: Chance, depth: number): Expression {
  const kind = chance.below(depth > 0 ? 8 : 3);
  const inner = () => randomExpression(chance, depth - 1);
  if (kind === 0) return text(chance.pick(["a", "b", "ab", ""]));
  if (kind === 1) return oneOf(codesOf(chance.pick(["a", "ab", ""])));
  if (kind === 2) return rule(chance.pick(names));
  if (kind < 5) return sequence(inner(), inner());
  if (kind < 7) return either(inner(), inner());
  const least = chance.below(3);
  return repeat(inner(), least, chance.below(2) ? null : least + chance.below(3));
}

const textsUpTo = (length: number): string[] =>
  length === 0
    ? [""]
    : textsUpTo(length - 1).flatMap((start) =>
        start.length === length - 1 ? [start, `${start}a`, `${start}b`] : [start],
      );

test("takes what random rules take, whichever way they name one another", () => {
  const chance = new Chance(11);
  let taken = 0;
  for (let round = 0; round < 150; round++) {
    const rules: Rules = new Map(names.map((name) => [name, randomExpression(chance, 3)]));
    const automaton = automatonOf(rules);
    const written = textsUpTo(5);
    const whole = written.filter((each) => endsIn(rules, each).get("root")![0]!.has(each.length));
    taken += whole.length;
    for (const each of written) {
      const reading = readBy(automaton, each);
      const message = `${round}: ${JSON.stringify(each)} of ${JSON.stringify([...rules])}`;
      expect(reading === "whole", message).toBe(whole.includes(each));
      // Nothing is read that has no end.
      const goesOn = whole.some((other) => other.startsWith(each));
      if (goesOn) expect(reading === "whole" || reading === each.length, message).toBe(true);
    }
  }
  expect(taken).toBeGreaterThan(800);
});

test("reads nothing that can't be ended", () => {
  const rules: Rules = new Map();
  rules.set("root", either(sequence(text("a"), rule("dead")), text("b"), rule("round")));
  rules.set("dead", sequence(text("x"), rule("dead")));
  rules.set("round", rule("round"));
  const automaton = automatonOf(rules);
  expect(readBy(automaton, "a")).toBe(0);
  expect(readBy(automaton, "b")).toBe("whole");
  rules.set("root", rule("dead"));
  expect(automatonOf(rules).possible).toBe(false);
});

test("rules that are ambiguous at each character stay small", () => {
  const root = either(
    sequence(text("a"), rule("root"), text("b")),
    sequence(text("a"), rule("root"), text("c")),
    sequence(rule("root"), rule("root")),
    many(text("a")),
  );
  const automaton = automatonOf(new Map([["root", root]]));
  expect(readBy(automaton, `${"a".repeat(60)}${"bc".repeat(30)}`)).toBe("whole");
  expect(readBy(automaton, `a${"bc".repeat(2)}`)).toBe(2);
});

test("goes the same ways however often its states were made anew", () => {
  // More places than are kept at once: each state of the repeat has a thousand.
  const root = repeat(either(text("a"), sequence(text("a"), text("b"))), 0, 1000);
  const automaton = automatonOf(new Map([["root", sequence(root, text("c"))]]));
  const written = `${"aab".repeat(300)}c`;
  for (let round = 0; round < 3; round++) expect(readBy(automaton, written)).toBe("whole");
});

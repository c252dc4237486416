import { expect, test } from "vitest";
import { automatonOf, Chance, readBy } from "./grammar.cases.ts";
import { type NumberRange, numbersIn } from "./json-numbers.ts";

const bounds = [null, 0, 1, -1, 9, 10, 99, -100, 12.5, -0.25, 0.001, 123.456, -7.5, 1e-7, 1e21];

/** Numbers near the bounds, and others, as they may be written. */
function samples(chance: Chance, range: NumberRange): string[] {
  const near = [range.least, range.most, 0].flatMap((bound) =>
    bound === null
      ? []
      : [-1, -0.1, -0.001, 0, 0.001, 0.1, 1].map((step) => `${Number((bound + step).toFixed(4))}`),
  );
  const digits = () => String(chance.below(10 ** (1 + chance.below(4))));
  const drawn = Array.from({ length: 60 }, () => {
    const sign = chance.below(2) ? "-" : "";
    return sign + digits() + (chance.below(2) ? `.${digits()}` : "");
  });
  return [...near, ...drawn].filter((written) => /^-?\d{1,19}(\.\d{1,6})?$/.test(written));
}

test.each([true, false])("takes just the numbers between the bounds, integers: %j", (integer) => {
  const chance = new Chance(9);
  for (const least of bounds) {
    for (const most of bounds) {
      const range = {
        least,
        most,
        above: chance.below(2) === 1,
        below: chance.below(2) === 1,
        integer,
      };
      const automaton = automatonOf(new Map([["root", numbersIn(range)]]));
      for (const written of samples(chance, range)) {
        const value = Number(written);
        const over = least === null || (range.above ? value > least : value >= least);
        const under = most === null || (range.below ? value < most : value <= most);
        // One zero is enough, and integers are written without a point.
        const points = integer || ((range.above || range.below) && bounds.at(-1) === most);
        const plain = !/^-0(\.0*)?$/.test(written) && !(points && written.includes("."));
        const message = `${written} in ${JSON.stringify(range)}`;
        expect(readBy(automaton, written) === "whole", message).toBe(over && under && plain);
      }
    }
  }
});

test("writes numbers as JSON does", () => {
  const range = { least: -5, most: 1000, above: false, below: false, integer: false };
  const automaton = automatonOf(new Map([["root", numbersIn(range)]]));
  for (const written of ["007", "01", "1.", ".5", "+1", "1e2", "--1", "", "-", "1000.0000001"]) {
    expect(readBy(automaton, written), written).not.toBe("whole");
  }
  for (const written of ["1.50", "999.999999999", "1000", "1000.000", "-5.0", "0", "0.0"]) {
    expect(readBy(automaton, written), written).toBe("whole");
  }
});

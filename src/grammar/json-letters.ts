import { type CodeSet, codeSet, codesOf, common, complement, without } from "./code-points.ts";
import { between, type Expression, either, oneOf, sequence, text, texts } from "./expressions.ts";

const controls = codeSet([[0, 0x1f]]);
/** Characters that stand in JSON strings as they are. */
export const plainLetters: CodeSet = without(complement(controls), codesOf('"\\'));
const hex = oneOf(codesOf("0123456789abcdefABCDEF"));

/** Escapes by code, of whole characters: surrogates come in pairs. */
const beforeSurrogates = sequence(oneOf(codesOf("dD")), between("0", "7"));
const others = sequence(oneOf(codesOf("0123456789abcefABCEF")), hex);
const highHalf = sequence(oneOf(codesOf("dD")), oneOf(codesOf("89abAB")), hex, hex);
const lowHalf = sequence(oneOf(codesOf("dD")), oneOf(codesOf("cdefCDEF")), hex, hex);
const codeEscape = sequence(
  text("u"),
  either(
    sequence(either(beforeSurrogates, others), hex, hex),
    sequence(highHalf, text("\\u"), lowHalf),
  ),
);

/** One character, escaped. */
export const escapedLetter: Expression = sequence(
  text("\\"),
  either(oneOf(codesOf('"\\/bfnrt')), codeEscape),
);

/**
 * What an expression says, as it stands in a JSON string.
 * @param letters what stands there as it is
 * @param toEscaped what else may, as it is written
 */
export function asJsonString(
  expression: Expression,
  letters: CodeSet,
  toEscaped: (text: string) => string,
): Expression {
  const inner = (part: Expression) => asJsonString(part, letters, toEscaped);
  switch (expression.kind) {
    case "text":
      return text(toEscaped(expression.text));
    case "set": {
      // All that is escaped is ASCII.
      const special = common(without(expression.set, letters), codeSet([[0, 0x7f]]));
      const escaped = special.flatMap(([first, last]) =>
        Array.from({ length: last - first + 1 }, (_, at) =>
          toEscaped(String.fromCharCode(first + at)),
        ),
      );
      return either(oneOf(common(expression.set, letters)), texts(escaped));
    }
    case "sequence":
      return sequence(...expression.parts.map(inner));
    case "either":
      return either(...expression.options.map(inner));
    case "repeat":
      return { ...expression, body: inner(expression.body) };
    case "rule":
      return expression;
  }
}

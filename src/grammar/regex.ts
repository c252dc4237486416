import { InputError } from "../errors.ts";
import { regexCharsMax } from "../limits.ts";
import { codeSet, codesOf, complement } from "./code-points.ts";
import { type Expression, either, nothing, oneOf, repeat, sequence, text } from "./expressions.ts";
import { PatternReader } from "./pattern-reader.ts";

/** One of a regex's alternatives, and whether it is tied to where the text begins and ends. */
export interface Alternative {
  readonly body: Expression;
  readonly fromStart: boolean;
  readonly toEnd: boolean;
}

const noNewline = complement(codesOf("\n\r\u2028\u2029"));
/** Any text. */
const anyText = repeat(oneOf(complement(codeSet([]))), 0, null);

/**
 * Reads a regex, as far as JavaScript and Python agree on it. What looks around or back is refused, and
 * so are anchors but at the ends of the whole or of one of its alternatives.
 * @throws InputError
 */
export function readRegex(pattern: string): readonly Alternative[] {
  if (pattern.length > regexCharsMax) {
    throw new InputError(
      `The regex has ${pattern.length} characters; ${regexCharsMax} are the most.`,
    );
  }
  return new RegexReader("regex", pattern).read();
}

/** The texts that a regex finds itself in. Alternatives that are tied alike share what is around them. */
export function searched(alternatives: readonly Alternative[]): Expression {
  const tied = (start: boolean, end: boolean) => {
    const some = alternatives.filter(
      ({ fromStart, toEnd }) => fromStart === start && toEnd === end,
    );
    if (some.length === 0) return nothing;
    const bodies = either(...some.map(({ body }) => body));
    return sequence(start ? text("") : anyText, bodies, end ? text("") : anyText);
  };
  return either(tied(true, true), tied(true, false), tied(false, true), tied(false, false));
}

/** The texts that a regex is the whole of. */
export const whole = (alternatives: readonly Alternative[]): Expression =>
  either(...alternatives.map(({ body }) => body));

class RegexReader extends PatternReader {
  read(): Alternative[] {
    const alternatives: Alternative[] = [];
    do {
      const fromStart = this.skip("^") || this.skip("\\A");
      const body = this.#sequence();
      const toEnd = this.skip("$") || this.skip("\\Z") || this.skip("\\z");
      alternatives.push({ body, fromStart, toEnd });
    } while (this.skip("|"));
    if (this.ended) return alternatives;
    this.fail(this.peek() === ")" ? "closes a group that isn't open" : "goes on behind its end");
  }

  #sequence(): Expression {
    const parts: Expression[] = [];
    while (!this.ended && !/[|)$]/.test(this.peek()) && !/^\\[zZ]$/.test(this.peek(2))) {
      parts.push(this.#repeated(this.#item()));
    }
    return sequence(...parts);
  }

  #repeated(body: Expression): Expression {
    const repeats = this.readRepeats();
    if (!repeats) return body;
    // How much it would rather take changes nothing about what it may be.
    this.skip("?");
    if (this.readRepeats()) this.fail("repeats what is repeated already");
    return repeat(body, repeats.least, repeats.most);
  }

  #item(): Expression {
    const letter = this.take();
    if (letter === ".") return oneOf(noNewline);
    if (letter === "[") return oneOf(this.readClass());
    if (letter === "(") return this.nested(() => this.#group());
    if (letter === "\\") return this.#escaped();
    if (/[*+?]/.test(letter)) this.fail("repeats nothing");
    if (letter === "^") this.fail("has a ^ that isn't at the beginning");
    return text(letter);
  }

  #escaped(): Expression {
    if (/[bBA]/.test(this.peek())) this.fail("looks at what is around it, which is not supported");
    if (/[1-9k]/.test(this.peek())) this.fail("refers back, which is not supported");
    if (/[pP]/.test(this.peek())) this.fail("has a class of Unicode's, which is not supported");
    const escaped = this.readEscape();
    return typeof escaped === "string" ? text(escaped) : oneOf(escaped);
  }

  #group(): Expression {
    if (this.skip("?") && !this.skip(":")) {
      this.skip("P");
      if (!this.skip("<") || /[=!]/.test(this.peek())) {
        this.fail("has a group that looks around or sets flags, which is not supported");
      }
      this.takeWhile(/\w/);
      if (!this.skip(">")) this.fail("has a group without a name");
    }
    const options: Expression[] = [];
    do options.push(this.#sequence());
    while (this.skip("|"));
    if (this.peek() === "$") this.fail("has a $ inside of a group, which is not supported");
    if (!this.skip(")")) this.fail("has a group that isn't closed");
    return either(...options);
  }
}

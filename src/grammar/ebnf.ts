import { InputError } from "../errors.ts";
import { shown } from "../json.ts";
import { ebnfCharsMax } from "../limits.ts";
import { codesOf, complement } from "./code-points.ts";
import {
  type Expression,
  either,
  oneOf,
  type Rules,
  repeat,
  rule,
  sequence,
  text,
} from "./expressions.ts";
import { PatternReader } from "./pattern-reader.ts";

const anything = complement(codesOf(""));

/**
 * Reads rules `name ::= …` of literals in quotes, classes in brackets, `.`, names, groups, `|`, `*`, `+`,
 * `?` and `{least,most}`, with comments behind `#`. A rule goes on up to the next.
 * @throws InputError
 */
export function readEbnf(written: string): Rules {
  if (written.length > ebnfCharsMax) {
    throw new InputError(
      `The grammar has ${written.length} characters; ${ebnfCharsMax} are the most.`,
    );
  }
  const rules = new EbnfReader("grammar", written).read();
  if (!rules.has("root")) throw new InputError("The grammar has no rule of the name root.");
  return rules;
}

class EbnfReader extends PatternReader {
  readonly #rules: Rules = new Map();
  readonly #named = new Set<string>();

  read(): Rules {
    this.#space();
    while (!this.ended) {
      const name = this.#nextRule();
      if (name === null) this.fail("has something that is no rule");
      if (this.#rules.has(name)) this.fail(`has the rule ${shown(name)} twice`);
      this.#rules.set(name, this.#options());
    }
    for (const name of this.#named) {
      if (!this.#rules.has(name)) {
        throw new InputError(`The grammar names the rule ${shown(name)}, which it doesn't have.`);
      }
    }
    return this.#rules;
  }

  #space(): void {
    while (this.takeWhile(/\s/) !== "" || this.peek() === "#") {
      if (this.peek() === "#") this.takeWhile(/[^\n]/);
    }
  }

  #name(): string {
    const name = this.takeWhile(/[\w-]/);
    this.#space();
    return name;
  }

  /** The name of a rule that begins here; null, with nothing taken, where none does. */
  #nextRule(): string | null {
    const before = this.mark;
    const name = this.#name();
    if (name !== "" && this.skip("::=")) {
      this.#space();
      return name;
    }
    this.rewind(before);
    return null;
  }

  #options(): Expression {
    const options: Expression[] = [];
    do {
      this.#space();
      options.push(this.#sequence());
    } while (this.skip("|"));
    return either(...options);
  }

  #sequence(): Expression {
    const parts: Expression[] = [];
    while (!this.ended && !/[|)]/.test(this.peek()) && !this.#atRule()) {
      parts.push(this.#repeated(this.#item()));
    }
    return sequence(...parts);
  }

  #atRule(): boolean {
    const before = this.mark;
    const found = this.#nextRule() !== null;
    this.rewind(before);
    return found;
  }

  #repeated(body: Expression): Expression {
    this.#space();
    const repeats = this.readRepeats();
    if (!repeats) return body;
    this.#space();
    if (this.readRepeats()) this.fail("repeats what is repeated already");
    return repeat(body, repeats.least, repeats.most);
  }

  #item(): Expression {
    if (/[\w-]/.test(this.peek())) {
      const name = this.#name();
      this.#named.add(name);
      return rule(name);
    }
    const letter = this.take();
    if (letter === '"') return this.#literal();
    if (letter === "[") return oneOf(this.readClass());
    if (letter === ".") return oneOf(anything);
    if (letter !== "(") this.fail(`has ${shown(letter)} where a rule's parts stand`);
    const inside = this.nested(() => this.#options());
    if (!this.skip(")")) this.fail("has a group that isn't closed");
    return inside;
  }

  #literal(): Expression {
    let literal = "";
    while (!this.skip('"')) {
      const letter = this.take();
      const escaped = letter === "\\" ? this.readEscape() : letter;
      if (typeof escaped !== "string") this.fail("has a class inside of quotes");
      literal += escaped;
    }
    return text(literal);
  }
}

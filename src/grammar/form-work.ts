import { InputError } from "../errors.ts";
import { formWorkMax } from "../limits.ts";

/** Of what can't be made or followed because of the work, whatever stands in it. */
export const tooComplexCode = "grammar_too_complex";

/**
 * The work of making one form, in steps of about a microsecond. It is counted, not timed: the same form
 * is always made, or always refused.
 */
export class FormWork {
  #left = formWorkMax;

  /** Steps that may still be spent. */
  get left(): number {
    return this.#left;
  }

  /** @throws InputError for more than are left */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left >= 0) return;
    throw tooComplex(
      "takes too much work: fewer or smaller schemas, references or repeats would fit",
    );
  }
}

/** @param problem of the form */
export const tooComplex = (problem: string): InputError =>
  new InputError(`The reply's form ${problem}.`, null, tooComplexCode);

import type { Engine, ReplyRequest } from "../engine.ts";
import { InputError } from "../errors.ts";
import type { Stream } from "../stream.ts";
import type { Form } from "./grammar-fields.ts";

/** How a request begins one of its replies. */
export type Begin = (own: Required<Pick<ReplyRequest, "choice" | "grammar">>) => Stream;

/**
 * The replies to one request, of which the first has begun. The others come once it has computed the
 * prompt, which they then find in the cache.
 */
export class Choices {
  readonly first: Stream;
  /** Resolves once all have begun and the first has a token; throws where that fails. */
  readonly begun: Promise<void>;
  readonly #streams: Stream[];
  #cancelled = false;

  /** @param begin begins the reply of that number */
  constructor(first: Stream, count: number, begin: (choice: number) => Promise<Stream>) {
    this.first = first;
    this.#streams = [first];
    this.begun = this.#beginOthers(count, begin);
    // Who answers hears of it, but may have hung up before.
    this.begun.catch(() => {});
  }

  /** Those that have begun. */
  get streams(): readonly Stream[] {
    return this.#streams;
  }

  /** Ends those that have begun, and begins no other. */
  cancel(): void {
    this.#cancelled = true;
    for (const stream of this.#streams) stream.cancel();
  }

  async #beginOthers(count: number, begin: (choice: number) => Promise<Stream>): Promise<void> {
    await this.first.started;
    for (let choice = 1; choice < count && !this.#cancelled; choice++) {
      const stream = await begin(choice);
      this.#streams.push(stream);
      if (this.#cancelled) stream.cancel();
    }
  }
}

/**
 * Begins `count` replies to one request, each drawn by another seed and held to `form`.
 * @param form null for none
 * @param signal fires where the client hangs up, which cancels them
 * @throws InputError where so many aren't served at once, or the form can't be held to; what `begin`
 *   throws of the first
 */
export async function beginChoices(
  engine: Engine,
  count: number,
  form: Form | null,
  signal: AbortSignal,
  begin: Begin,
): Promise<Choices> {
  const { slots } = engine.info.backend;
  if (count > slots) {
    throw new InputError(`n may be at most ${slots} here, not ${count}.`, "n", "too_many");
  }
  const beginOne = async (choice: number) =>
    begin({ choice, grammar: form && (await engine.grammar(form.spec, form.param)) });
  const choices = new Choices(await beginOne(0), count, beginOne);
  if (signal.aborted) choices.cancel();
  else signal.addEventListener("abort", () => choices.cancel(), { once: true });
  return choices;
}

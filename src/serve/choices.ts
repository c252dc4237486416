import type { Engine, GrammarSpec, ReplyRequest } from "../engine.ts";
import { InputError } from "../errors.ts";
import type { Stream } from "../stream.ts";

/** How a request begins one of its replies. */
export type Begin = (own: Required<Pick<ReplyRequest, "choice" | "grammar">>) => Stream;

/**
 * Begins `count` replies to one request, each drawn by another seed and held to `form`. The others come
 * once the first has computed the prompt, which they then find in the cache.
 * @param form null for none
 * @param signal fires where the client hangs up, which cancels them
 * @throws InputError where so many aren't served at once, or the form can't be held to; what `begin`
 *   throws
 */
export async function beginChoices(
  engine: Engine,
  count: number,
  form: GrammarSpec | null,
  signal: AbortSignal,
  begin: Begin,
): Promise<Stream[]> {
  const { slots } = engine.info.backend;
  if (count > slots) {
    throw new InputError(`n may be at most ${slots} here, not ${count}.`, "n", "too_many");
  }
  const streams: Stream[] = [];
  try {
    for (let choice = 0; choice < count; choice++) {
      if (choice === 1) await streams[0]!.started;
      if (choice > 0 && signal.aborted) break;
      const stream = begin({ choice, grammar: form && (await engine.grammar(form)) });
      cancelWith(signal, stream);
      streams.push(stream);
    }
  } catch (error) {
    for (const stream of streams) stream.cancel();
    throw error;
  }
  return streams;
}

/** Cancels a stream when its client hangs up. */
function cancelWith(signal: AbortSignal, stream: Stream): void {
  if (signal.aborted) stream.cancel();
  else signal.addEventListener("abort", () => stream.cancel(), { once: true });
}

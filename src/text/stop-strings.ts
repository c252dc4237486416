import { InputError } from "../errors.ts";
import { stopStringBytesMax, stopStringsMax } from "../limits.ts";
import { StringMatcher } from "./string-matcher.ts";

/** What of a piece of text may be sent, and the stop string that ended the reply, if one did. */
export interface StopResult {
  readonly text: string;
  readonly stopped: string | null;
}

/**
 * Ends a reply at the first stop string, of which nothing is sent. The first is the one completed
 * first; of several completed by the same character, the longest, so that the text is cut at the
 * earlier place. The reply then never needs a token more to know where it ends.
 */
export class StopMatcher {
  readonly #matcher: StringMatcher;
  #stopped: string | null = null;

  /** @throws InputError (param `stop`) for an empty, overlong or ill-formed string, or too many. */
  constructor(stops: readonly string[]) {
    if (stops.length > stopStringsMax) {
      throw new InputError(`At most ${stopStringsMax} stop strings are allowed.`, "stop");
    }
    for (const stop of stops) checkStop(stop);
    this.#matcher = new StringMatcher(stops);
  }

  /** Text after a stop string is dropped, and `stopped` stays set. */
  push(text: string): StopResult {
    if (this.#stopped !== null) return { text: "", stopped: this.#stopped };
    const { before, matched } = this.#matcher.push(text);
    this.#stopped = matched;
    return { text: before, stopped: matched };
  }

  /** At the end of the reply: releases what was held for a match that didn't come. */
  flush(): string {
    return this.#matcher.flush();
  }
}

function checkStop(stop: string): void {
  if (stop === "") throw new InputError("A stop string must not be empty.", "stop");
  // Half a surrogate pair would cut a character in two.
  if (!stop.isWellFormed()) {
    throw new InputError("A stop string must be well-formed Unicode.", "stop");
  }
  if (new TextEncoder().encode(stop).length > stopStringBytesMax) {
    const limit = `${stopStringBytesMax} bytes`;
    throw new InputError(`A stop string must be at most ${limit} of UTF-8.`, "stop");
  }
}

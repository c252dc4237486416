import type { TokenLogprob } from "../stream.ts";

const nothing: Uint8Array = new Uint8Array();

/**
 * Finds the tokens of a reply's text among all of its tokens: those of tags and calls, and white
 * space that is dropped, are none. Tokens come at once; their text may be held back for a while.
 */
export class TextLogprobs {
  readonly #encoder = new TextEncoder();
  #pending: TokenLogprob[] = [];
  /** What the latest token of the text has beyond the text so far. */
  #ahead: Uint8Array = nothing;

  add(tokens: readonly TokenLogprob[]): void {
    this.#pending.push(...tokens);
  }

  /** Something else than text came: what is pending was of that. */
  skip(): void {
    this.#pending = [];
    this.#ahead = nothing;
  }

  /** The tokens that begin in the next piece of the text. */
  take(text: string): TokenLogprob[] {
    let rest: Uint8Array = this.#encoder.encode(text);
    const taken: TokenLogprob[] = [];
    const pass = (bytes: Uint8Array) => {
      const shared = Math.min(bytes.length, rest.length);
      rest = rest.subarray(shared);
      this.#ahead = bytes.subarray(shared);
    };
    pass(agreeing(this.#ahead, rest) ?? nothing);
    while (rest.length > 0) {
      const token = this.#pending.shift();
      if (!token) break;
      const bytes = agreeing(token.bytes, rest);
      if (!bytes) continue;
      taken.push(token);
      pass(bytes);
    }
    return taken;
  }
}

const spaces: ReadonlySet<number> = new Set([..." \n\r\t"].map((space) => space.charCodeAt(0)));

/**
 * The bytes of a token where `text` begins with them, or they with it; leading white space may be
 * left out. Null where they don't agree.
 */
function agreeing(bytes: Uint8Array, text: Uint8Array): Uint8Array | null {
  for (let start = 0; start < bytes.length; start++) {
    const rest = bytes.subarray(start);
    if (rest.every((byte, at) => at >= text.length || byte === text[at])) return rest;
    if (!spaces.has(bytes[start]!)) break;
  }
  return null;
}

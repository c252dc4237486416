import type { TokenId } from "../ids.ts";

/** The part of a tokenizer that turns ids into bytes. */
export interface TokenBytes {
  tokenBytes(id: TokenId): Uint8Array;
  isSpecial(id: TokenId): boolean;
}

export interface DetokenizerOptions {
  /** Leave control tokens (`<|im_end|>` and the like) out of the text. */
  readonly skipSpecial: boolean;
}

/** What the reply parser reads must be text, even in a vocabulary that flags it as special. */
const textMarkers: ReadonlySet<string> = new Set([
  "<think>",
  "</think>",
  "<tool_call>",
  "</tool_call>",
  "<tool_response>",
  "</tool_response>",
]);

/**
 * Turns a stream of ids into text without ever emitting half a character. Bytes that may still
 * become a character are held; as soon as they can't, each maximal ill-formed part comes out as
 * one U+FFFD (the WHATWG decoder's rule), and so does what is held at the end. The pieces joined
 * therefore equal the whole decoded at once, wherever the stream is cut.
 */
export class Detokenizer {
  readonly #tokens: TokenBytes;
  readonly #skipSpecial: boolean;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(tokens: TokenBytes, options: DetokenizerOptions) {
    this.#tokens = tokens;
    this.#skipSpecial = options.skipSpecial;
  }

  /** The text that `id` completes; often empty. A skipped token leaves held bytes as they are. */
  push(id: TokenId): string {
    const bytes = this.#tokens.tokenBytes(id);
    if (this.#skipSpecial && this.#tokens.isSpecial(id) && !isMarker(bytes)) return "";
    return this.#decoder.decode(bytes, { stream: true });
  }

  /** Ends the text: what is still held becomes U+FFFD. Afterwards a new text may begin. */
  flush(): string {
    return this.#decoder.decode();
  }
}

function isMarker(bytes: Uint8Array): boolean {
  return textMarkers.has(new TextDecoder().decode(bytes));
}

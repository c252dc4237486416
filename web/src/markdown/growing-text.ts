import { lex, type Token } from "./lexer.ts";

/**
 * Reads a text that grows. What can't change any more is read once: a piece costs what the last blocks
 * are long, not what the text is, and blocks before them keep their identity.
 */
export class GrowingText {
  #text = "";
  #settledChars = 0;
  #settled: readonly Token[] = [];

  /** The blocks of `text`, which begins with all that was read before, or is another one. */
  read(text: string): readonly Token[] {
    const lines = text.replaceAll(/\r\n?/g, "\n");
    if (!lines.startsWith(this.#text)) {
      this.#settledChars = 0;
      this.#settled = [];
    }
    this.#text = lines;
    const open = lex(lines.slice(this.#settledChars));
    const blocks = [...this.#settled, ...open];
    const settled = open.slice(0, firstOpen(open));
    const raw = rawOf(settled);
    // The lexer mends some line ends, and then this isn't where its blocks end.
    if (raw !== "" && lines.startsWith(raw, this.#settledChars)) {
      this.#settledChars += raw.length;
      this.#settled = [...this.#settled, ...settled];
    }
    return blocks;
  }
}

/**
 * How many of the tokens are settled: those before the last blank line behind which a line is whole. A
 * block goes on over a blank line only where the next line says so, as in lists; the lexer has seen it.
 */
function firstOpen(tokens: readonly Token[]): number {
  for (let at = tokens.length - 1; at > 0; at--) {
    const isBlankBefore = /\n[ \t]*\n$/.test(tokens[at - 1]!.raw);
    if (isBlankBefore && rawOf(tokens.slice(at)).trimStart().includes("\n")) return at;
  }
  return 0;
}

const rawOf = (tokens: readonly Token[]): string => tokens.map(({ raw }) => raw).join("");

export const isSpace = (unit: string): boolean =>
  unit === " " || unit === "\n" || unit === "\t" || unit === "\r";

/** What a piece of text led to in the search for something that must come next. */
export interface Reading {
  /** more: still undecided; found: it came; failed: it can't come. */
  readonly state: "more" | "found" | "failed";
  /** What follows it, or begins with the character at which it failed. */
  readonly after: string;
}

/** Reads white space, then exactly one of some tags, in text that arrives in pieces. */
export class TagExpecter {
  readonly #tags: readonly string[];
  #space = "";
  #tag = "";

  /** @param tags none of them the beginning of another. */
  constructor(tags: readonly string[]) {
    this.#tags = tags;
  }

  push(text: string): Reading {
    for (let at = 0; at < text.length; at++) {
      const unit = text[at]!;
      if (this.#tag === "" && isSpace(unit)) {
        this.#space += unit;
        continue;
      }
      const longer = this.#tag + unit;
      if (!this.#tags.some((tag) => tag.startsWith(longer))) {
        return { state: "failed", after: text.slice(at) };
      }
      this.#tag = longer;
      if (this.#tags.includes(longer)) return { state: "found", after: text.slice(at + 1) };
    }
    return { state: "more", after: "" };
  }

  /** The tag, as far as it has come. */
  get tag(): string {
    return this.#tag;
  }

  /** Everything read, as written. */
  get read(): string {
    return this.#space + this.#tag;
  }
}

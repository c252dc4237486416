export const isSpace = (unit: string): boolean =>
  unit === " " || unit === "\n" || unit === "\t" || unit === "\r";

export interface Expectation {
  /** more: still undecided; found: `tag` came; failed: none of the tags can come. */
  readonly state: "more" | "found" | "failed";
  readonly tag: string;
  /** White space and tags consumed by the decision, as written. */
  readonly consumed: string;
  /** What follows the tag, or begins with what isn't one. */
  readonly rest: string;
}

/** Reads white space, then exactly one of some tags, in text that arrives in pieces. */
export class TagExpecter {
  readonly #tags: readonly string[];
  #space = "";
  #partial = "";

  constructor(tags: readonly string[]) {
    this.#tags = tags;
  }

  push(text: string): Expectation {
    for (let at = 0; at < text.length; at++) {
      const unit = text[at]!;
      if (this.#partial === "" && isSpace(unit)) {
        this.#space += unit;
        continue;
      }
      const partial = this.#partial + unit;
      if (!this.#tags.some((tag) => tag.startsWith(partial))) {
        const rest = this.#partial + text.slice(at);
        return { state: "failed", tag: "", consumed: this.#space, rest };
      }
      this.#partial = partial;
      if (this.#tags.includes(partial)) {
        const consumed = this.#space + partial;
        return { state: "found", tag: partial, consumed, rest: text.slice(at + 1) };
      }
    }
    return { state: "more", tag: "", consumed: "", rest: "" };
  }

  /** What has been read without a decision. */
  get pending(): string {
    return this.#space + this.#partial;
  }
}

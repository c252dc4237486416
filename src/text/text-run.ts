/** Which characters at the end of a text may turn out not to belong to it. */
export type HoldRule = (unit: string) => boolean;

const isNewline: HoldRule = (unit) => unit === "\n" || unit === "\r";

/** Passes text on piece by piece, holding back the run at its end that may have to go. */
export class TextRun {
  readonly #holds: HoldRule;
  #trimsStart: boolean;
  #held = "";

  /** @param trimsStart whether newlines before anything else are dropped. */
  constructor(holds: HoldRule, trimsStart: boolean) {
    this.#holds = holds;
    this.#trimsStart = trimsStart;
  }

  /** The text that certainly belongs. */
  push(text: string): string {
    const own = this.#trimsStart ? withoutLeadingNewlines(text) : text;
    if (own === "") return "";
    this.#trimsStart = false;
    let end = own.length;
    while (end > 0 && this.#holds(own[end - 1]!)) end--;
    if (end === 0) {
      this.#held += own;
      return "";
    }
    const sure = this.#held + own.slice(0, end);
    this.#held = own.slice(end);
    return sure;
  }

  /** The held run, which is forgotten here: the caller sends it or not. */
  takeHeld(): string {
    const held = this.#held;
    this.#held = "";
    return held;
  }
}

function withoutLeadingNewlines(text: string): string {
  let start = 0;
  while (start < text.length && isNewline(text[start]!)) start++;
  return text.slice(start);
}

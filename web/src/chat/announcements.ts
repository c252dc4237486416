/** Cuts a growing text into pieces to be read out: whole lines, so that words aren't read in parts. */
export class Announcements {
  #spokenChars = 0;

  /** The lines that `text` has more than before, or all that is left where it has ended. */
  next(text: string, ended: boolean): string {
    const until = ended ? text.length : text.lastIndexOf("\n") + 1;
    const piece = text.slice(this.#spokenChars, Math.max(this.#spokenChars, until)).trim();
    this.#spokenChars = Math.max(this.#spokenChars, until);
    return piece;
  }
}

/** What must come about in some of a few hundred worlds, by a line that tells of it. */
const sights: readonly (readonly [what: string, line: RegExp])[] = [
  ["a full queue", /is refused: queue_full/],
  ["a request that is too large", /is refused: request_too_large/],
  ["a device that is lost for good", /is refused: backend_lost/],
  ["a device that is opened again", /opened again: opens/],
  ["a device that can't be opened again", /opened again: fails/],
  ["a background stream that gives way", /background stream \d+ gives way/],
  ["a stream that gives way for want of pages", / stream \d+ gives way at row [1-9]/],
  ["a client that leaves the queue", /leaves while it is waiting/],
  ["a client that leaves while a disk is read", /leaves while it is reading/],
  ["a client that leaves during its prompt", /leaves while it is filling/],
  ["a client that leaves during its reply", /leaves while it is decoding/],
  ["a state from the cache", /resume of slot/],
  ["a page that is copied", / copy \d+ to \d+/],
  ["a state that is evicted", /a state is dropped/],
  ["a state from a disk", / restore \d+/],
  ["a window that is a tree", /decode .*tree/],
  ["a block of the drafter's", / draft /],
  ["a pass that fails", /ends: error backend_error/],
  ["a row that isn't finite", /ends: error non_finite_logits/],
  ["a prompt without the cache", /ends: .* off/],
  ["a prompt that nobody knew", /ends: .* no_match/],
  ["a prompt whose state was evicted", /ends: .* evicted/],
  ["a state without the drafter's context", /ends: .* no_drafter_context/],
];

/** Looks for them in the journals of worlds. */
export class Sights {
  readonly #missing = new Map(sights);

  look(lines: readonly string[]): void {
    for (const [what, line] of this.#missing) {
      if (lines.some((each) => line.test(each))) this.#missing.delete(what);
    }
  }

  /** What was not seen yet. */
  get missing(): string[] {
    return [...this.#missing.keys()];
  }
}

/** A state of the automaton: the longest end of the text that begins one of the patterns. */
interface Node {
  readonly next: Map<string, Node>;
  readonly depth: number;
  /** The state for the longest proper end of this one; null only at the root. */
  fail: Node | null;
  /** The longest pattern that ends here, if any does. */
  match: string | null;
}

/** What one piece of text led to. */
export interface Scan {
  /** Text that is part of no match. */
  readonly before: string;
  /** The pattern that was completed, or null. */
  readonly matched: string | null;
  /** The part of the piece after the match, not scanned. */
  readonly after: string;
}

/**
 * Finds the first of several strings in text that arrives in pieces, in time linear in the text
 * (Aho–Corasick). First means completed first; of several completed by the same character, the
 * longest. What may be the beginning of a match is held back, so the outcome doesn't depend on
 * where the pieces are cut.
 */
export class StringMatcher {
  readonly #root: Node;
  #state: Node;
  /** The text of `#state`, withheld. */
  #held = "";

  /** @param patterns none of them empty. */
  constructor(patterns: readonly string[]) {
    this.#root = buildAutomaton(patterns);
    this.#state = this.#root;
  }

  /** Scans up to the first match; after one, the matcher starts afresh. */
  push(text: string): Scan {
    let state = this.#state;
    for (let at = 0; at < text.length; at++) {
      state = advance(state, text[at]!);
      if (state.match === null) continue;
      const seen = this.#held + text.slice(0, at + 1);
      this.#restart();
      const before = seen.slice(0, seen.length - state.match.length);
      return { before, matched: state.match, after: text.slice(at + 1) };
    }
    const seen = this.#held + text;
    this.#state = state;
    this.#held = seen.slice(seen.length - state.depth);
    return { before: seen.slice(0, seen.length - state.depth), matched: null, after: "" };
  }

  /** Releases what is held, because no more text comes. */
  flush(): string {
    const held = this.#held;
    this.#restart();
    return held;
  }

  #restart(): void {
    this.#state = this.#root;
    this.#held = "";
  }
}

function advance(from: Node, unit: string): Node {
  for (let node = from; ; ) {
    const next = node.next.get(unit);
    if (next !== undefined) return next;
    if (node.fail === null) return node;
    node = node.fail;
  }
}

function emptyNode(depth: number): Node {
  return { next: new Map(), depth, fail: null, match: null };
}

function buildAutomaton(patterns: readonly string[]): Node {
  const root = emptyNode(0);
  for (const pattern of patterns) {
    let node = root;
    for (let at = 0; at < pattern.length; at++) {
      const child: Node = node.next.get(pattern[at]!) ?? emptyNode(node.depth + 1);
      node.next.set(pattern[at]!, child);
      node = child;
    }
    node.match = pattern;
  }
  // Breadth first, so that the shorter states a fail link leads to are finished.
  const queue = [root];
  for (const node of queue) {
    for (const [unit, child] of node.next) {
      child.fail = node.fail === null ? root : advance(node.fail, unit);
      child.match ??= child.fail.match;
      queue.push(child);
    }
  }
  return root;
}

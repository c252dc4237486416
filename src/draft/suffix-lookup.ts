import { invariant } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { windowRowsMax } from "../limits.ts";

/** Matches are compared up to here; longer ones count as equal, and the latest of them wins. */
const matchTokensMax = 64;
/** What a match needs where the last proposal landed nothing, and where it landed a draft. */
const matchTokensToBegin = 8;
const matchTokensToGoOn = 6;
/** Tokens that are indexed together: no match that may go on is shorter. */
const gramTokens = matchTokensToGoOn;
/** Earlier places that are looked at, latest first, so that a text of one phrase costs no more. */
const placesMax = 1024;
/** Fewer are not worth a window. */
const draftsMin = 2;
/** Proposals in a row that land nothing, after which the lookup is silent. */
const missesMax = 4;
const silentRounds = 16;
const capacityFirst = 1024;

/**
 * The copy drafter of one stream: what followed the latest, longest earlier occurrence of the last
 * tokens will follow again. Every token of prompt and reply is pushed once, in constant time; tokens
 * and index take 16 to 32 bytes a token.
 */
export class SuffixLookup {
  #tokens = new Int32Array(capacityFirst);
  #count = 0;
  /** By hash of a gram, where its latest one ends; −1: nowhere. */
  #latest: Int32Array = emptyBuckets(capacityFirst);
  /** By place, the one before it with the same hash. */
  #before = new Int32Array(capacityFirst);
  #going = false;
  #misses = 0;
  #silent = 0;

  /** Appends a token of the prompt or a committed one. */
  push(id: TokenId): void {
    if (this.#count === this.#tokens.length) this.#grow();
    this.#tokens[this.#count] = id;
    this.#index(this.#count++);
  }

  /**
   * The drafts to follow the last token; none where nothing matches. To be asked once a round, because
   * silence is counted in calls. Where the match runs into the last token, the text repeats itself, and
   * so do the drafts.
   * @param most room for drafts; a window's rows bound them too
   */
  propose(most: number): readonly TokenId[] {
    if (this.#silent > 0) {
      this.#silent--;
      return [];
    }
    const wanted = Math.min(most, windowRowsMax - 1);
    const place = wanted < draftsMin ? null : this.#longest();
    if (place === null) {
      this.#going = false;
      return [];
    }
    const drafts: TokenId[] = [];
    for (let next = place + 1; drafts.length < wanted; next++) {
      drafts.push(next < this.#count ? this.#tokens[next]! : drafts[next - this.#count]!);
    }
    return drafts;
  }

  /** How many of a proposal's drafts were tried, and how many of these were right. */
  landed(proposed: number, accepted: number): void {
    invariant(accepted <= proposed && proposed > 0, `${accepted} of ${proposed} drafts landed`);
    this.#going = accepted > 0;
    this.#misses = accepted > 0 ? 0 : this.#misses + 1;
    if (this.#misses < missesMax) return;
    this.#misses = 0;
    this.#silent = silentRounds;
  }

  /** Where the longest match ends, the latest among equals; null where none is long enough. */
  #longest(): number | null {
    const last = this.#count - 1;
    let length = (this.#going ? matchTokensToGoOn : matchTokensToBegin) - 1;
    let longest: number | null = null;
    let place = last < 0 ? -1 : this.#before[last]!;
    for (let looked = 0; place >= 0 && looked < placesMax; looked++) {
      const found = this.#matchLength(place, last);
      if (found > length) {
        longest = place;
        length = found;
      }
      if (found === matchTokensMax) break;
      place = this.#before[place]!;
    }
    return longest;
  }

  /** How many tokens up to both places are the same. The gram's are compared too: hashes collide. */
  #matchLength(place: number, last: number): number {
    const most = Math.min(matchTokensMax, place + 1);
    let length = 0;
    while (length < most && this.#tokens[place - length] === this.#tokens[last - length]) length++;
    return length;
  }

  #index(place: number): void {
    this.#before[place] = -1;
    if (place < gramTokens - 1) return;
    let hash = 0;
    for (let at = place - gramTokens + 1; at <= place; at++) {
      hash = Math.imul(hash ^ this.#tokens[at]!, 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    const bucket = hash & (this.#latest.length - 1);
    this.#before[place] = this.#latest[bucket]!;
    this.#latest[bucket] = place;
  }

  #grow(): void {
    const capacity = 2 * this.#tokens.length;
    const tokens = new Int32Array(capacity);
    tokens.set(this.#tokens);
    this.#tokens = tokens;
    this.#before = new Int32Array(capacity);
    this.#latest = emptyBuckets(capacity);
    for (let place = 0; place < this.#count; place++) this.#index(place);
  }
}

/** Two buckets a place, a power of two. */
const emptyBuckets = (capacity: number): Int32Array => new Int32Array(2 * capacity).fill(-1);

import type { Candidates } from "../backend/candidates.ts";
import { invariant } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import { adjustLogit, type LogitAdjustments, type TokenUse } from "./adjust.ts";

/** A token whose logit may be another one now. */
interface Moved {
  readonly id: TokenId;
  readonly logit: number;
}

/**
 * One stream's rows, adjusted by its prompt and the tokens it committed. Few tokens of a vocabulary
 * are touched: these are put in order and merged with the others, which stay as they came.
 */
export class AdjustedRows {
  readonly #adjust: LogitAdjustments;
  readonly #uses = new Map<TokenId, TokenUse>();
  /** By id, whether `#uses` has it: asked for a whole row, a map takes ten times as long. */
  #touched = new Uint8Array(0);

  constructor(adjust: LogitAdjustments, promptIds: readonly TokenId[]) {
    this.#adjust = adjust;
    for (const [id, bias] of adjust.logitBias) this.#use(id, { bias });
    // The other penalties don't see the prompt.
    if (adjust.repetitionPenalty === 1) return;
    for (const id of new Set(promptIds)) this.#use(id, { seen: true });
  }

  /** A token that the reply has from now on. */
  commit(id: TokenId): void {
    this.#use(id, { seen: true, count: (this.#uses.get(id)?.count ?? 0) + 1 });
  }

  /**
   * The first `count` candidates after the adjustments (0: all), in candidates' order.
   * @param row all of the row's candidates, left as they are
   */
  reorder(row: Candidates, count: number): Candidates {
    const moved = this.#moved(row);
    const wanted = count === 0 ? row.ids.length : Math.min(count, row.ids.length);
    const ids = new Int32Array(wanted);
    const logits = new Float32Array(wanted);
    let next = 0;
    let at = 0;
    for (let place = 0; place < wanted; place++) {
      while (at < row.ids.length && this.#touched[row.ids[at]!] === 1) at++;
      const mover = moved[next];
      if (mover && goesBefore(mover, row, at)) {
        ids[place] = mover.id;
        logits[place] = mover.logit;
        next++;
      } else {
        ids[place] = row.ids[at]!;
        logits[place] = row.logits[at]!;
        at++;
      }
    }
    return { ids, logits };
  }

  /** The touched tokens with their new logits, in candidates' order. */
  #moved({ ids, logits }: Candidates): Moved[] {
    const moved: Moved[] = [];
    for (let at = 0; at < ids.length; at++) {
      const id = ids[at]!;
      if (this.#touched[id] !== 1) continue;
      moved.push({ id, logit: adjustLogit(logits[at]!, this.#uses.get(id)!, this.#adjust) });
    }
    invariant(moved.length === this.#uses.size, "a row to adjust that isn't whole");
    return moved.sort((a, b) => b.logit - a.logit || a.id - b.id);
  }

  #use(id: TokenId, change: Partial<TokenUse>): void {
    const before = this.#uses.get(id) ?? { seen: false, count: 0, bias: 0 };
    this.#uses.set(id, { ...before, ...change });
    if (id >= this.#touched.length) {
      const grown = new Uint8Array(2 * (id + 1));
      grown.set(this.#touched);
      this.#touched = grown;
    }
    this.#touched[id] = 1;
  }
}

/** Whether a moved token comes before the row's candidate at `at`, or none is left there. */
function goesBefore({ id, logit }: Moved, { ids, logits }: Candidates, at: number): boolean {
  if (at === ids.length) return true;
  const other = logits[at]!;
  return logit > other || (logit === other && id < ids[at]!);
}

/** Tokens from one cut of a long prompt to the next. */
const cutRows = 2048;
/** A cut so near to a mark saves too little over it. */
const nearRows = 256;

/**
 * Where a long prompt's states are kept beside its marks, so that one that parts from it in the middle
 * begins no more than about 2,048 tokens before.
 * @param rows of the marks
 * @param tokens of the prompt
 */
export function prefixCuts(rows: readonly number[], tokens: number): number[] {
  const cuts: number[] = [];
  for (let cut = cutRows; cut < tokens; cut += cutRows) {
    if (rows.every((mark) => Math.abs(mark - cut) >= nearRows)) cuts.push(cut);
  }
  return cuts;
}

/** How a stream leaves. */
export interface Leave {
  readonly maxTokens: number;
  /** After how many tokens it ends as by a stop string; null: nowhere. */
  readonly stopAfter: number | null;
  /** At which token it is cancelled, 0: before it has any; null: it isn't. */
  readonly cancelAt: number | null;
}

export interface LeavePattern {
  readonly name: string;
  /**
   * @param stream its number
   * @param turn differs from cell to cell
   * @param tokens of a short reply
   */
  leave(stream: number, turn: number, tokens: number): Leave;
}

/** A reply that ends by itself. */
export const wholeReply = (maxTokens: number): Leave => ({
  maxTokens,
  stopAfter: null,
  cancelAt: null,
});

/** Of few lengths, because each is made alone too. */
const quarter = (stream: number, turn: number, tokens: number): number =>
  ((stream + turn) % 4) * Math.floor(tokens / 4);

/** Every second reply is as long as can be, so that others may come at each of its tokens. */
const unequal = (stream: number, turn: number, tokens: number): Leave =>
  wholeReply(stream % 2 === 0 ? tokens : 1 + quarter(stream, turn, tokens));

export const leavePatterns: readonly LeavePattern[] = [
  { name: "by length", leave: unequal },
  {
    // Late, so that many are there at once.
    name: "by stop",
    leave: (stream, turn, tokens) => ({
      ...wholeReply(2 * tokens),
      stopAfter: 2 * tokens - quarter(stream, turn, tokens),
    }),
  },
  {
    name: "some cancelled",
    leave: (stream, turn, tokens) => ({
      ...unequal(stream, turn, tokens),
      cancelAt: stream % 2 === 1 ? (stream + turn) % tokens : null,
    }),
  },
];

/** What has happened in a cell so far. */
export interface Seen {
  /** Passes that the backend was given, of prompts and of rounds. */
  readonly passes: number;
  /** Of these, chunks of prompts. */
  readonly chunks: number;
  /** Of each stream's reply. */
  readonly tokens: readonly number[];
  /** Whether each stream is over. */
  readonly ended: readonly boolean[];
}

/** When streams come. The first comes first; where nobody is there, the next one comes all the same. */
export interface JoinPattern {
  readonly name: string;
  /** Whether others come while the first stream's prompt is computed. */
  readonly amid: boolean;
  /** @param stream its number, not the first */
  joins(stream: number, seen: Seen): boolean;
}

/** Prompt chunks behind which streams come. */
const chunksMost = 3;

export const allAtOnce: JoinPattern = { name: "all at once", amid: false, joins: () => true };

/**
 * Together, a pass apart, in the middle of a prompt, and at a token of the stream before.
 * @param turn chooses the place in the prompt, and the token
 */
export function joinPatterns(turn: number, replyTokens: number): JoinPattern[] {
  const chunk = 1 + (turn % chunksMost);
  const token = 1 + (turn % replyTokens);
  return [
    allAtOnce,
    { name: "a pass apart", amid: false, joins: (stream, { passes }) => passes >= stream },
    { name: `amid chunk ${chunk}`, amid: true, joins: (_, { chunks }) => chunks >= chunk },
    {
      name: `at another's token ${token}`,
      amid: false,
      joins: (stream, { tokens, ended }) => ended[stream - 1]! || tokens[stream - 1]! >= token,
    },
  ];
}

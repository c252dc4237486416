import type { ReplyEvent } from "../engine.ts";
import type { DeltafoldError } from "../errors.ts";
import type { Reply } from "../stream.ts";

/**
 * How an endpoint writes the replies to one request: whole, or as server-sent events, each method
 * giving the text of those that come at its time. Where several replies were asked for, `choice` is
 * which one it is.
 */
export interface ReplyFormat {
  whole(replies: readonly Reply[]): object;
  /** Before any part. */
  opening(): string;
  part(event: ReplyEvent, choice: number): string;
  /** After a reply's last part. */
  ended(reply: Reply, choice: number): string;
  /** After all of them. */
  closing(replies: readonly Reply[]): string;
  /** Instead of what would follow: something failed. */
  failed(error: DeltafoldError): string;
}

/** One server-sent event. */
export function frame(data: object, event?: string): string {
  const name = event === undefined ? "" : `event: ${event}\n`;
  return `${name}data: ${JSON.stringify(data)}\n\n`;
}

/** What OpenAI's streams end in. */
export const doneFrame = "data: [DONE]\n\n";

/** What the objects of one reply have in common. */
export interface ReplyHead {
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly model: string;
}

const idLetters = "abcdefghijklmnopqrstuvwxyz234567";
const idLength = 24;

/** An id that nobody guesses: 120 random bits after the prefix. */
export function randomId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(idLength));
  return prefix + Array.from(bytes, (byte) => idLetters[byte % idLetters.length]).join("");
}

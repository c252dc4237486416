import type { TokenId } from "./ids.ts";
import { Detokenizer } from "./text/detokenize.ts";
import { type ReplyEvent, ReplyParser } from "./text/reply-parser.ts";
import { StopMatcher } from "./text/stop-strings.ts";
import type { Tokenizer } from "./text/tokenizer.ts";
import type { ToolSpec } from "./text/tool-calls.ts";

export interface ReplyTextOptions {
  readonly stop: readonly string[];
  /** Null: the reply is plain text, of which nothing is split off. */
  readonly chat: {
    readonly reasoningOpen: boolean;
    readonly tools: readonly ToolSpec[] | null;
  } | null;
}

/** A reply on its way from tokens to text: bytes to characters, stop strings, then the parts of a chat. */
export class ReplyText {
  readonly #detokenizer: Detokenizer;
  readonly #stops: StopMatcher;
  readonly #parser: ReplyParser | null;
  /** All text so far, as it was before it was split. */
  text = "";
  /** The stop string that ended the reply. */
  stopped: string | null = null;

  /** @throws InputError for stop strings that can't be used */
  constructor(tokenizer: Tokenizer, options: ReplyTextOptions) {
    this.#detokenizer = new Detokenizer(tokenizer, { skipSpecial: true });
    this.#stops = new StopMatcher(options.stop);
    this.#parser = options.chat ? new ReplyParser(options.chat) : null;
  }

  /** What a token settles. `stopped` is set where it completes a stop string. */
  push(id: TokenId): ReplyEvent[] {
    return this.#match(this.#detokenizer.push(id));
  }

  /** What was held back, once no token follows. */
  end(): ReplyEvent[] {
    // No stop string ends a reply that has ended: what was held is only released.
    const rest = this.stopped === null ? this.#stops.flush() + this.#detokenizer.flush() : "";
    const events = this.#parse(rest);
    if (this.#parser) events.push(...this.#parser.end());
    return events;
  }

  #match(piece: string): ReplyEvent[] {
    const { text, stopped } = this.#stops.push(piece);
    this.stopped = stopped;
    return this.#parse(text);
  }

  #parse(text: string): ReplyEvent[] {
    this.text += text;
    if (text === "") return [];
    return this.#parser ? this.#parser.push(text) : [{ type: "content", text }];
  }
}

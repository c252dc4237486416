import type { TokenId } from "./ids.ts";
import { Detokenizer } from "./text/detokenize.ts";
import { ReplyParser, type ReplyParserOptions, type ReplyPart } from "./text/reply-parser.ts";
import { StopMatcher } from "./text/stop-strings.ts";
import type { Tokenizer } from "./text/tokenizer.ts";

export interface ReplyTextOptions {
  readonly stop: readonly string[];
  /** Null: the reply is plain text, of which nothing is split off. */
  readonly chat: ReplyParserOptions | null;
}

/** A reply on its way from tokens to text: characters, stop strings, then the parts of a chat. */
export class ReplyText {
  readonly #tokenizer: Tokenizer;
  readonly #detokenizer: Detokenizer;
  readonly #stops: StopMatcher;
  readonly #parser: ReplyParser | null;
  /** All text so far, as it was before it was split. */
  text = "";
  /** The stop string that ended the reply. */
  stopped: string | null = null;

  /** @throws InputError for stop strings that can't be used */
  constructor(tokenizer: Tokenizer, options: ReplyTextOptions) {
    this.#tokenizer = tokenizer;
    this.#detokenizer = new Detokenizer(tokenizer, { skipSpecial: true });
    this.#stops = new StopMatcher(options.stop);
    this.#parser = options.chat ? new ReplyParser(options.chat) : null;
  }

  /** Whether the next token belongs to a think block. */
  get inReasoning(): boolean {
    return this.#parser?.inReasoning ?? false;
  }

  /** Whether no token may follow: a stop string came, or the only call has ended. */
  get ended(): boolean {
    return this.stopped !== null || (this.#parser?.ended ?? false);
  }

  /** Calls that are whole. */
  get callsEnded(): number {
    return this.#parser?.callsEnded ?? 0;
  }

  /** A token's own text and bytes. */
  tokenText(id: TokenId): { readonly text: string; readonly bytes: Uint8Array } {
    return { text: this.#tokenizer.decode([id]), bytes: this.#tokenizer.tokenBytes(id) };
  }

  /** What a token settles. */
  push(id: TokenId): ReplyPart[] {
    return this.#match(this.#detokenizer.push(id));
  }

  /** What was held back, once no token follows. */
  end(): ReplyPart[] {
    // No stop string ends a reply that has ended: what was held is only released.
    const rest = this.ended ? "" : this.#stops.flush() + this.#detokenizer.flush();
    const events = this.#parse(rest);
    if (this.#parser) events.push(...this.#parser.end());
    return events;
  }

  #match(piece: string): ReplyPart[] {
    const { text, stopped } = this.#stops.push(piece);
    this.stopped = stopped;
    return this.#parse(text);
  }

  #parse(text: string): ReplyPart[] {
    this.text += text;
    if (text === "") return [];
    return this.#parser ? this.#parser.push(text) : [{ type: "content", text }];
  }
}

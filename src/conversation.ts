import type { TokenId } from "./ids.ts";
import type { PrefixMark } from "./rounds/live-stream.ts";
import { prefixCuts } from "./state/prefix-cuts.ts";
import type { ChatMessage } from "./text/chat-messages.ts";
import { endsInOpenThink } from "./text/chat-template.ts";
import { nextTurnIds, type PromptSource, promptMarks } from "./text/prompt-marks.ts";
import type { Tokenizer } from "./text/tokenizer.ts";

/** A chat request as its template makes a prompt of it, and what of that later prompts will repeat. */
export class Conversation {
  readonly promptIds: readonly TokenId[];
  /** Whether the reply begins with reasoning. */
  readonly reasoningOpen: boolean;
  readonly #source: PromptSource;

  /**
   * @param render the template, with the request's tools and variables
   * @throws InputError where the template refuses the messages; what `tokenizer` throws
   */
  constructor(
    render: PromptSource["render"],
    tokenizer: Pick<Tokenizer, "encode">,
    messages: readonly ChatMessage[],
  ) {
    this.#source = { messages, render, encode: (text) => tokenizer.encode(text) };
    const rendered = render(messages);
    this.promptIds = tokenizer.encode(rendered);
    this.reasoningOpen = endsInOpenThink(rendered);
  }

  /** Where states are kept while the prompt is computed. */
  get marks(): PrefixMark[] {
    return marksWithin(promptMarks(this.#source, this.promptIds), this.promptIds.length);
  }

  /** The tokens that every turn after a reply begins with; null where the template refuses them. */
  after(reply: Parameters<typeof nextTurnIds>[1]): TokenId[] | null {
    return nextTurnIds(this.#source, reply);
  }
}

/** Where states of a text are kept that has no turns: for the same prompt again, and in between. */
export const marksOfText = (tokens: number): PrefixMark[] =>
  marksWithin([{ rows: tokens, kind: "history" }], tokens);

/**
 * Marks of a prompt, and cuts where it is long. One at its very end comes a token earlier: where the same
 * is asked for again, its last token has to be computed, since the reply's first is drawn from it.
 */
function marksWithin(marks: readonly PrefixMark[], tokens: number): PrefixMark[] {
  const kinds = new Map<number, PrefixMark["kind"]>();
  for (const { rows, kind } of marks) kinds.set(Math.min(rows, tokens - 1), kind);
  for (const cut of prefixCuts([...kinds.keys()], tokens)) kinds.set(cut, "cut");
  const ascending = [...kinds].filter(([rows]) => rows > 0).sort(([a], [b]) => a - b);
  return ascending.map(([rows, kind]) => ({ rows, kind }));
}

import type { TokenId } from "./ids.ts";
import type { PrefixMark } from "./rounds/live-stream.ts";
import { prefixCuts } from "./state/prefix-cuts.ts";
import type { ChatMessage } from "./text/chat-messages.ts";
import { type ChatTemplate, endsInOpenThink } from "./text/chat-template.ts";
import { nextTurnIds, type PromptSource, promptMarks } from "./text/prompt-marks.ts";
import type { Tokenizer } from "./text/tokenizer.ts";
import type { ToolSpec } from "./text/tool-calls.ts";

/** A chat request as its template makes a prompt of it, and what of that later prompts will repeat. */
export class Conversation {
  readonly promptIds: readonly TokenId[];
  /** Whether the reply begins with reasoning. */
  readonly reasoningOpen: boolean;
  readonly #source: PromptSource;

  /**
   * @param tools null for none
   * @param kwargs the template's variables
   * @throws InputError where the template refuses the messages
   */
  constructor(
    template: ChatTemplate,
    tokenizer: Tokenizer,
    messages: readonly ChatMessage[],
    tools: readonly ToolSpec[] | null,
    kwargs: Readonly<Record<string, unknown>>,
  ) {
    const options = { tools, addGenerationPrompt: true, kwargs };
    this.#source = {
      messages,
      render: (each) => template.render(each, options),
      encode: (text) => tokenizer.encode(text),
    };
    const rendered = this.#source.render(messages);
    this.promptIds = tokenizer.encode(rendered);
    this.reasoningOpen = endsInOpenThink(rendered);
  }

  /**
   * Where states are kept while the prompt is computed. None at its very end: where it is asked for again,
   * its last token has to be computed, since the reply's first is drawn from it.
   */
  get marks(): PrefixMark[] {
    const { length } = this.promptIds;
    const marks = promptMarks(this.#source, this.promptIds).map(({ rows, kind }) => {
      return { rows: Math.min(rows, length - 1), kind };
    });
    return withCuts(
      marks.filter(({ rows }) => rows > 0),
      length,
    );
  }

  /** The tokens that every turn after a reply begins with; null where the template refuses them. */
  after(reply: Parameters<typeof nextTurnIds>[1]): TokenId[] | null {
    return nextTurnIds(this.#source, reply);
  }
}

/** Marks of a prompt, and cuts where it is long. */
export function withCuts(marks: readonly PrefixMark[], tokens: number): PrefixMark[] {
  const cuts = prefixCuts(
    marks.map(({ rows }) => rows),
    tokens,
  );
  return [...marks, ...cuts.map((rows) => ({ rows, kind: "cut" }) as const)].sort(
    (a, b) => a.rows - b.rows,
  );
}

import { Template } from "@huggingface/jinja";
import { CheckpointError, InputError, messageOf } from "../errors.ts";
import { type ChatMessage, normaliseMessages } from "./chat-messages.ts";
import { pythonFunctions, rewriteForPython } from "./python-filters.ts";
import { effortLevelsIn, type ReasoningEffort } from "./reasoning-effort.ts";
import type { ToolSpec } from "./tool-calls.ts";

export interface RenderOptions {
  /** Offered to the model; null or empty for none. */
  readonly tools: readonly ToolSpec[] | null;
  /** Whether to open the assistant's turn at the end. */
  readonly addGenerationPrompt: boolean;
  /** `chat_template_kwargs`, such as enable_thinking. A null is as good as absent. */
  readonly kwargs?: Readonly<Record<string, unknown>>;
}

/** A checkpoint's own chat template (Jinja): messages → the text to encode. */
export class ChatTemplate {
  /** The levels of `reasoning_effort` that it names. */
  readonly effortLevels: readonly ReasoningEffort[];
  readonly #template: Template;

  private constructor(template: Template, effortLevels: readonly ReasoningEffort[]) {
    this.#template = template;
    this.effortLevels = effortLevels;
  }

  /** @throws CheckpointError naming `fileName` when the template can't be parsed. */
  static fromSource(source: string, fileName: string): ChatTemplate {
    try {
      const template = new Template(source);
      rewriteForPython(template.parsed);
      return new ChatTemplate(template, effortLevelsIn(source));
    } catch (cause) {
      throw new CheckpointError(fileName, `not a usable template: ${messageOf(cause)}`, cause);
    }
  }

  /**
   * @throws InputError with the template's own words (param `messages`) where it refuses the
   *   conversation, or naming what is wrong in a message.
   */
  render(messages: readonly ChatMessage[], options: RenderOptions): string {
    // Without a prototype, because its keys come from the request.
    const variables: Record<string, unknown> = Object.create(null);
    for (const [name, value] of Object.entries(options.kwargs ?? {})) {
      if (value !== null) variables[name] = value;
    }
    Object.assign(variables, pythonFunctions, {
      messages: normaliseMessages(messages),
      tools: options.tools !== null && options.tools.length > 0 ? options.tools : null,
      add_generation_prompt: options.addGenerationPrompt,
    });
    try {
      return this.#template.render(variables);
    } catch (cause) {
      throw new InputError(messageOf(cause), "messages");
    }
  }
}

/** Whether a rendered prompt leaves a think block open, so that the reply begins with reasoning. */
export function endsInOpenThink(rendered: string): boolean {
  return rendered.trimEnd().endsWith("<think>");
}

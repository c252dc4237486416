import type { ChatRequest } from "../../engine.ts";
import type { TokenId } from "../../ids.ts";
import type { ChatMessage } from "../../text/chat-messages.ts";
import type { ResumeEngine } from "./resume-engine.ts";
import { fedTokens, knownTokens } from "./resume-known.ts";
import { type ServedReply, serveTogether } from "./resume-serve.ts";

/** A request, its prompt, and the reply that it has where nothing is cached. */
export interface ResumeStep {
  readonly request: ChatRequest;
  readonly promptIds: readonly TokenId[];
  /** Tokens of the prompt that are cached, where everything is and every pass was waited for. */
  readonly known: number;
  /** At least so many are where nothing was waited for. */
  readonly knownAtOnce: number;
  readonly reply: ServedReply;
}

/** Steps that are served together: one, but for forks. */
export interface ResumeAct {
  readonly name: string;
  readonly steps: readonly ResumeStep[];
  /** Whether it returns to turns that the conversation has left behind: evicted, they aren't spilled. */
  readonly goesBack?: true;
}

/** What is known of a prompt before it comes; nothing, where nothing is said. */
export interface Claim {
  /** Prompts that may come in its place, or came before. */
  readonly others?: readonly (readonly TokenId[])[];
  /** Another figure than these give. */
  readonly known?: number;
  /** The step before it in its conversation. */
  readonly after?: ResumeStep | null;
}

/** Renders a request's prompt as an engine does. */
export type PromptOf = (request: ChatRequest) => TokenId[];

/** What a text begins with may become one token with what is before it: these don't alike. */
const unlike = ["Otherwise", "\nOtherwise"] as const;

/** Writes steps down: each is served with nothing cached, and drafted, so that its context is seen. */
export class ScriptWriter {
  readonly promptOf: PromptOf;
  readonly #plain: ResumeEngine;
  /** What streams were fed: a prompt and its reply, but for the last token. */
  readonly #fed: TokenId[][] = [];

  constructor(plain: ResumeEngine, promptOf: PromptOf) {
    this.#plain = plain;
    this.promptOf = promptOf;
  }

  async write(
    request: ChatRequest,
    { others = [], known, after = null }: Claim,
  ): Promise<ResumeStep> {
    const asked = { ...request, draft: true, cachePrompt: false };
    const { replies } = await serveTogether(this.#plain, [asked]);
    const reply = replies[0]!;
    const promptIds = this.promptOf(request);
    const fed = fedTokens(promptIds, this.#fed);
    this.#fed.push([...promptIds, ...reply.ids.slice(0, -1)]);
    // What a plain reply leaves is of no use to a drafted one.
    const usable = after && (after.request.draft || !request.draft);
    return {
      request,
      promptIds,
      known: known ?? Math.max(knownTokens(promptIds, others), fed),
      knownAtOnce: usable ? knownTokens(promptIds, [after.promptIds]) : 0,
      reply,
    };
  }

  /** Prompts that end otherwise: with other words of the user's, or other results of calls. */
  otherwise(request: ChatRequest): TokenId[][] {
    const { messages } = request;
    const { role } = messages.at(-1)!;
    const from = messages.findLastIndex((message) => message.role !== role) + 1;
    return unlike.map((content) => {
      const ends = messages.slice(from).map((message) => ({ ...message, content }));
      return this.promptOf({ ...request, messages: [...messages.slice(0, from), ...ends] });
    });
  }

  /** Prompts of turns that come after the request's reply, whatever that is. */
  later(request: ChatRequest): TokenId[][] {
    return unlike.map((content) => {
      const turn: ChatMessage[] = [
        { role: "assistant", content },
        { role: "user", content },
      ];
      return this.promptOf({ ...request, messages: [...request.messages, ...turn] });
    });
  }
}

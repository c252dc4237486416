import { isDeepStrictEqual } from "node:util";
import type { ChatRequest } from "../../engine.ts";
import type { TokenId } from "../../ids.ts";
import type { Reply } from "../../stream.ts";
import type { ChatMessage } from "../../text/chat-messages.ts";
import { gateSamplings } from "./gate-samplings.ts";
import type { ResumeAct, ResumeStep, ScriptWriter } from "./resume-script.ts";
import {
  resumeSystem,
  resumeTools,
  resumeTurns,
  type ScriptedCall,
  type ScriptedTurn,
} from "./resume-turns.ts";

/** Some replies end within them, and some don't. */
const replyTokens = 24;
const thinkingTokens = 40;

/** A conversation with tools as an agent's client has it: every request repeats all before it. */
export class ScriptedConversation {
  readonly acts: ResumeAct[] = [];
  /** The messages so far. */
  readonly talk: ChatMessage[] = [resumeSystem];
  /** By turn, how many messages were before it. */
  readonly starts: number[] = [];
  readonly #writer: ScriptWriter;
  /** In its order. */
  readonly steps: ResumeStep[] = [];

  constructor(writer: ScriptWriter) {
    this.#writer = writer;
  }

  /** The last request so far. */
  get last(): ResumeStep {
    return this.steps.at(-1)!;
  }

  async turn(number: number): Promise<void> {
    const turn = resumeTurns[number - 1]!;
    this.starts.push(this.talk.length);
    this.talk.push(user(turn.text));
    const asked = this.#request();
    const first = this.steps.length === 0;
    let reply = await this.#next(
      `turn ${number}`,
      asked,
      first ? [] : this.#writer.otherwise(asked),
    );
    if (turn.calls) reply = await this.#results(number, turn, reply);
    this.talk.push({ role: "assistant", content: reply.content });
  }

  async #results(number: number, turn: ScriptedTurn, reply: Reply): Promise<Reply> {
    const own = turn.ownCalls && reply.toolCalls.length > 0;
    const calls = own ? ownCalls(turn, reply) : turn.calls!;
    this.talk.push(...callMessages(calls, own ? reply : null));
    const asked = { ...this.#request(), draft: this.last.request.draft ?? true };
    // Where the client writes other calls than the reply's, only what was before the reply is known.
    const others =
      own || isWhole(reply, calls) ? this.#writer.otherwise(asked) : [this.last.promptIds];
    return await this.#next(`turn ${number}, results`, asked, others);
  }

  async #next(
    name: string,
    request: ChatRequest,
    others: readonly (readonly TokenId[])[],
  ): Promise<Reply> {
    const after = this.steps.at(-1) ?? null;
    const step = await this.#writer.write(request, { others, after });
    this.steps.push(step);
    this.acts.push({ name, steps: [step] });
    return step.reply;
  }

  #request(): ChatRequest {
    return { messages: [...this.talk], ...mannerOf(this.steps.length) };
  }
}

/** How the requests of a script are served, by their number: each sampling, drafted or plain, with thoughts or without. */
export function mannerOf(number: number): Omit<ChatRequest, "messages"> {
  const thinking = number % 5 === 0;
  return {
    tools: resumeTools,
    ...gateSamplings[number % gateSamplings.length]!.fields,
    maxTokens: thinking ? thinkingTokens : replyTokens,
    draft: number % 3 !== 2,
    templateKwargs: { enable_thinking: thinking },
    fingerprint: true,
  };
}

export const user = (content: string): ChatMessage => ({ role: "user", content });

/** The model's calls, with results from the script. */
export function ownCalls({ calls }: ScriptedTurn, { toolCalls }: Reply): ScriptedCall[] {
  return toolCalls.map((call, at) => ({ call, result: calls![at % calls!.length]!.result }));
}

/** Whether a reply consists of just these calls: a model may make those of the script by itself. */
function isWhole({ content, toolCalls }: Reply, calls: readonly ScriptedCall[]): boolean {
  return (
    content === "" &&
    isDeepStrictEqual(
      toolCalls,
      calls.map(({ call }) => call),
    )
  );
}

/**
 * Calls and their results, as a client repeats them.
 * @param reply that made them; null: nobody did
 */
export function callMessages(
  calls: readonly ScriptedCall[],
  reply: Pick<Reply, "content"> | null,
): ChatMessage[] {
  const ids = calls.map((_, at) => `call_${at}`);
  const repeated = calls.map(({ call }, at) => ({
    id: ids[at]!,
    type: "function",
    function: call,
  }));
  const results = calls.map(({ result }, at) => ({
    role: "tool",
    tool_call_id: ids[at]!,
    content: result,
  }));
  return [{ role: "assistant", content: reply?.content ?? "", tool_calls: repeated }, ...results];
}

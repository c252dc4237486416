import type { ReplyEvent } from "../engine.ts";
import { type DeltafoldError, invariant } from "../errors.ts";
import type { PromptLogprob, Reply, TokenLogprob } from "../stream.ts";
import { errorBody } from "./error-reply.ts";
import { completionLogprobs } from "./logprobs-format.ts";
import { extrasOf, usageOf } from "./reply-extras.ts";
import { doneFrame, frame, type ReplyFormat, type ReplyHead } from "./reply-format.ts";

/** What was written of one choice so far. */
interface Written {
  /** Of tokens whose chunk is still to come. */
  logprobs: TokenLogprob[];
  /** Characters of the tokens written. */
  chars: number;
}

/** text_completion, which chunks and whole replies share. */
export class CompletionFormat implements ReplyFormat {
  readonly #head: ReplyHead;
  readonly #includeUsage: boolean;
  readonly #echoed: string;
  readonly #choices: readonly Written[];

  /**
   * @param choices how many replies there are
   * @param echoed the prompt, where replies begin with it; else empty
   */
  constructor(head: ReplyHead, includeUsage: boolean, choices: number, echoed: string) {
    this.#head = head;
    this.#includeUsage = includeUsage;
    this.#echoed = echoed;
    const chars = echoed.length;
    this.#choices = Array.from({ length: choices }, () => ({ logprobs: [], chars }));
  }

  whole(replies: readonly Reply[]): object {
    const [only] = replies.length === 1 ? replies : [];
    return {
      ...this.#objectHead,
      choices: replies.map((reply, index) => ({
        index,
        text: this.#echoed + reply.text,
        logprobs: this.#logprobsOf(reply),
        finish_reason: reply.finishReason,
        ...(!only && extrasOf(reply)),
      })),
      usage: usageOf(replies),
      ...(only && extrasOf(only)),
    };
  }

  opening(): string {
    if (this.#echoed === "") return "";
    return this.#choices.map((_, choice) => this.#chunk(choice, this.#echoed)).join("");
  }

  part(event: ReplyEvent, choice: number): string {
    if (event.type === "logprobs") {
      this.#choices[choice]!.logprobs.push(...event.tokens);
      return "";
    }
    invariant(event.type === "content", `a completion with ${event.type}`);
    return this.#chunk(choice, event.text);
  }

  ended(reply: Reply, choice: number): string {
    return this.#chunk(choice, "", reply.finishReason, extrasOf(reply));
  }

  closing(replies: readonly Reply[]): string {
    if (!this.#includeUsage) return doneFrame;
    return frame({ ...this.#objectHead, choices: [], usage: usageOf(replies) }) + doneFrame;
  }

  failed(error: DeltafoldError): string {
    return frame(errorBody(error), "error") + doneFrame;
  }

  #chunk(
    index: number,
    text: string,
    finish_reason: Reply["finishReason"] | null = null,
    extras: object = {},
  ): string {
    const choice = { index, text, logprobs: this.#takeLogprobs(index), finish_reason };
    return frame({ ...this.#objectHead, choices: [choice], ...extras });
  }

  #takeLogprobs(index: number): object | null {
    const written = this.#choices[index]!;
    const { logprobs, chars } = written;
    if (logprobs.length === 0) return null;
    written.logprobs = [];
    written.chars += logprobs.reduce((sum, { text }) => sum + text.length, 0);
    return completionLogprobs(logprobs, chars);
  }

  /** With the prompt's, where it is echoed. */
  #logprobsOf({ logprobs, promptLogprobs }: Reply): object | null {
    if (logprobs === null) return null;
    const prompt: readonly PromptLogprob[] = this.#echoed === "" ? [] : (promptLogprobs ?? []);
    const offset = prompt.length > 0 ? 0 : this.#echoed.length;
    return completionLogprobs([...prompt, ...logprobs], offset);
  }

  get #objectHead(): object {
    return { ...this.#head, object: "text_completion" };
  }
}

import type { Backend, BackendInfo } from "./backend/backend.ts";
import { type Clock, systemClock } from "./clock.ts";
import { Conversation, marksOfText } from "./conversation.ts";
import type { DraftingSource } from "./draft/drafting.ts";
import { ContextLengthError, InputError } from "./errors.ts";
import type { TokenId } from "./ids.ts";
import { promptChunkRows, replyTokensDefault } from "./limits.ts";
import { ReplyText, type ReplyTextOptions } from "./reply-text.ts";
import type { BackendCondition } from "./rounds/live-backend.ts";
import type { PrefixMark } from "./rounds/live-stream.ts";
import { type LoopCounts, RoundLoop } from "./rounds/loop.ts";
import type { CacheOptions } from "./rounds/stream-memory.ts";
import {
  resolveSampling,
  type SamplingDefaults,
  type SamplingFields,
  withSeed,
} from "./sampling/params.ts";
import { type Reply, Stream } from "./stream.ts";
import type { ChatMessage } from "./text/chat-messages.ts";
import type { ChatTemplate } from "./text/chat-template.ts";
import type { Tokenizer } from "./text/tokenizer.ts";
import type { ToolSpec } from "./text/tool-calls.ts";
import { WarmTurns } from "./warm-turns.ts";

export type { ChatMessage } from "./text/chat-messages.ts";
export type { ReplyEvent } from "./text/reply-parser.ts";
export type { ToolSpec } from "./text/tool-calls.ts";

/** What an engine is made of; the entry files put it together. */
export interface EngineParts {
  /** The engine's own from now on. */
  readonly backend: Backend;
  /** Opens a backend of the same sizes after the loss of one; where absent, a loss is for good. */
  readonly openAgain?: () => Promise<Backend>;
  /** What proposes tokens; absent: replies are decoded serially. */
  readonly drafting?: DraftingSource;
  readonly tokenizer: Tokenizer;
  /** Null for checkpoints without one: they complete, but don't chat. */
  readonly template: ChatTemplate | null;
  readonly model: string;
  /** Tokens that end a reply. */
  readonly eosIds: readonly TokenId[];
  readonly sampling: SamplingDefaults;
  /** Prompt and reply together, in tokens. */
  readonly contextTokens: number;
  /** Reply length when a request names none, cut to the room that is left. */
  readonly maxTokens?: number;
  /** What `enable_thinking` is unless a request says; null leaves it to the template. */
  readonly thinking: boolean | null;
  /** Where prompts find what was computed before; absent: nothing is cached. */
  readonly cache?: CacheOptions;
  /** Requests that may wait for a slot. */
  readonly queueMax?: number;
  /** The share of the time that replies have while prompts are computed. */
  readonly decodeShare?: number;
  readonly clock?: Clock;
}

/** What every request may say. Fields that are absent or null take the engine's defaults. */
export interface ReplyRequest extends SamplingFields {
  readonly maxTokens?: number | null;
  readonly stop?: readonly string[];
  /** Goes on past eos tokens, up to `maxTokens`. */
  readonly ignoreEos?: boolean;
  /** Whether the reply carries `stateSha`. */
  readonly fingerprint?: boolean;
  /** False: decodes serially, a token a pass. The reply is the same. */
  readonly draft?: boolean;
  /** False: neither looked up in the prompt cache nor left there. The reply is the same. */
  readonly cachePrompt?: boolean;
  /** A background request is served while no other is there. */
  readonly priority?: "foreground" | "background";
}

export interface ChatRequest extends ReplyRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly ToolSpec[] | null;
  /** Variables for the template, such as enable_thinking. */
  readonly templateKwargs?: Readonly<Record<string, unknown>>;
}

export interface CompletionRequest extends ReplyRequest {
  /** Text, or token ids as they are. */
  readonly prompt: string | readonly TokenId[];
}

export interface EngineInfo {
  readonly model: string;
  readonly contextTokens: number;
  readonly backend: BackendInfo;
  readonly chat: boolean;
  /** What cached prompts may take; 0: nothing is cached. */
  readonly promptCacheBytes: number;
}

/** A loaded model on a backend. */
export class Engine implements AsyncDisposable {
  readonly #parts: EngineParts;
  readonly #loop: RoundLoop;
  readonly #warmTurns: WarmTurns;
  readonly #clock: Clock;

  constructor(parts: EngineParts) {
    const { backend, openAgain = null, drafting = null, cache, queueMax, decodeShare } = parts;
    this.#parts = parts;
    this.#clock = parts.clock ?? systemClock;
    this.#loop = new RoundLoop(backend, {
      chunkRows: Math.min(promptChunkRows, backend.info.rowsMax),
      drafting,
      openAgain,
      clock: this.#clock,
      ...(cache && { cache }),
      ...(queueMax !== undefined && { queueMax }),
      ...(decodeShare !== undefined && { decodeShare }),
    });
    this.#warmTurns = new WarmTurns(this.#loop);
  }

  /** What it is now: a backend that was lost and opened again may be another device. */
  get info(): EngineInfo {
    const { model, contextTokens, template, cache } = this.#parts;
    return {
      model,
      contextTokens,
      backend: this.#loop.info,
      chat: template !== null,
      promptCacheBytes: cache?.bytesMax ?? 0,
    };
  }

  /** Requests that wait, and those that have a slot. */
  get counts(): LoopCounts {
    return this.#loop.counts;
  }

  /** What the prompt cache holds. */
  get cached(): { readonly entries: number; readonly bytes: number } {
    return this.#loop.cached;
  }

  /** Whether the backend is there, and what is done where it is not. */
  get condition(): BackendCondition {
    return this.#loop.condition;
  }

  /**
   * Replies to a conversation.
   * @throws InputError, ContextLengthError, QueueFullError
   */
  chat(request: ChatRequest): Stream {
    const { template, tokenizer, thinking } = this.#parts;
    if (!template) {
      throw new InputError(`${this.info.model} has no chat template: complete a text instead.`);
    }
    const tools = request.tools && request.tools.length > 0 ? request.tools : null;
    const kwargs = { enable_thinking: thinking, ...request.templateKwargs };
    const { messages } = request;
    const conversation = new Conversation(template, tokenizer, messages, tools, kwargs);
    const { promptIds, reasoningOpen } = conversation;
    const chat = { reasoningOpen, tools };
    const text = { stop: request.stop ?? [], chat };
    if (!this.#caches(request)) return this.#submit(promptIds, request, text, null);
    const stream = this.#submit(promptIds, request, text, () => conversation.marks);
    // Nobody waits for it: whatever becomes of it, the next turn is only slower.
    stream.result.then((reply) => this.#warm(conversation, reply)).catch(() => {});
    return stream;
  }

  /**
   * Continues a text or a list of token ids.
   * @throws InputError, ContextLengthError, QueueFullError
   */
  complete(request: CompletionRequest): Stream {
    const { prompt } = request;
    // The caller's array may change while the reply runs.
    const ids = typeof prompt === "string" ? this.tokenize(prompt) : [...prompt];
    const marks = this.#caches(request) ? () => marksOfText(ids.length) : null;
    return this.#submit(ids, request, { stop: request.stop ?? [], chat: null }, marks);
  }

  /** A text's tokens; special tokens written in it are recognised. */
  tokenize(text: string): TokenId[] {
    return this.#parts.tokenizer.encode(text);
  }

  /** Resolves when nobody is served, nothing is computed for next turns, and what was evicted is on disk. */
  async settled(): Promise<void> {
    await this.#loop.settled();
  }

  /** Cancels every stream, waits for their ends and gives the backend back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
  }

  #caches({ cachePrompt = true }: ReplyRequest): boolean {
    return cachePrompt && this.info.promptCacheBytes > 0;
  }

  /** @param marks found once the request is accepted; null: the prompt cache is of no concern to it */
  #submit(
    promptIds: readonly TokenId[],
    request: ReplyRequest,
    options: ReplyTextOptions,
    marks: (() => readonly PrefixMark[]) | null,
  ): Stream {
    const param = options.chat ? "messages" : "prompt";
    this.#checkPrompt(promptIds, param);
    const maxTokens = this.#maxTokens(promptIds.length, request.maxTokens ?? null, param);
    const sampling = withSeed(resolveSampling(request, this.#parts.sampling), promptIds);
    this.#checkIds(sampling.adjust.logitBias.keys(), "logit_bias");
    const text = new ReplyText(this.#parts.tokenizer, options);
    const stream = new Stream(promptIds.length, text, this.#clock);
    const eosIds = new Set(request.ignoreEos ? [] : this.#parts.eosIds);
    const { fingerprint = false, draft = true, priority = "foreground" } = request;
    this.#loop.checkRoom(promptIds.length, maxTokens, priority === "background");
    const round = { promptIds, maxTokens, sampling, eosIds, fingerprint, draft, priority };
    const cached = marks && { marks: marks() };
    return stream.attach((sink) => this.#loop.submit({ ...round, ...cached }, sink));
  }

  #warm(conversation: Conversation, reply: Reply): void {
    // A reply that was cut short is likelier to be asked for again than to be gone on from.
    const promptIds = reply.finishReason === "cancelled" ? null : conversation.after(reply);
    if (!promptIds || promptIds.length > this.info.contextTokens || promptIds.length === 0) return;
    this.#warmTurns.add(promptIds);
  }

  #checkPrompt(ids: readonly TokenId[], param: string): void {
    if (ids.length === 0) throw new InputError(`${param} must not be empty.`, param);
    this.#checkIds(ids, param);
  }

  #checkIds(ids: Iterable<TokenId>, param: string): void {
    const { vocabSize } = this.info.backend.shape;
    for (const id of ids) {
      if (Number.isInteger(id) && id >= 0 && id < vocabSize) continue;
      throw new InputError(
        `Token id ${id} is not in the vocabulary of ${vocabSize} tokens.`,
        param,
      );
    }
  }

  #maxTokens(promptTokens: number, asked: number | null, param: string): number {
    const { contextTokens } = this.info;
    if (asked !== null && !(Number.isSafeInteger(asked) && asked > 0)) {
      throw new InputError(`max_tokens must be a whole number over 0, not ${asked}.`, "max_tokens");
    }
    const room = contextTokens - promptTokens;
    if (room < (asked ?? 1)) {
      throw new ContextLengthError(contextTokens, promptTokens, asked, param);
    }
    return asked ?? Math.min(this.#parts.maxTokens ?? replyTokensDefault, room);
  }
}

import type { Backend, BackendInfo } from "./backend/backend.ts";
import { type Clock, systemClock } from "./clock.ts";
import { Conversation, marksOfText } from "./conversation.ts";
import type { DraftingSource } from "./draft/drafting.ts";
import { ContextLengthError, InputError, TextLengthError } from "./errors.ts";
import type { Grammars } from "./grammar/grammars.ts";
import type { ReplyGrammar } from "./grammar/reply-grammar.ts";
import type { GrammarSpec } from "./grammar/spec.ts";
import type { TokenId } from "./ids.ts";
import {
  promptChancesMax,
  promptCharsMin,
  promptCharsPerTokenMax,
  promptChunkRows,
  replyTokensDefault,
  turnCharacters,
} from "./limits.ts";
import { ReplyConstraint, type ThinkBlock } from "./reply-constraint.ts";
import { ReplyText, type ReplyTextOptions } from "./reply-text.ts";
import type { BackendCondition } from "./rounds/live-backend.ts";
import type { PrefixMark } from "./rounds/live-stream.ts";
import { type LoopCounts, RoundLoop } from "./rounds/loop.ts";
import type { CacheOptions } from "./rounds/stream-memory.ts";
import type { LoopTotals } from "./rounds/totals.ts";
import { allTokensBut } from "./sampling/constraint.ts";
import {
  resolveSampling,
  type SamplingDefaults,
  type SamplingFields,
  withSeed,
} from "./sampling/params.ts";
import { type Reply, Stream } from "./stream.ts";
import type { ChatMessage } from "./text/chat-messages.ts";
import type { ChatTemplate } from "./text/chat-template.ts";
import { effortKwargs, type ReasoningEffort } from "./text/reasoning-effort.ts";
import type { Tokenizer } from "./text/tokenizer.ts";
import type { ToolSpec } from "./text/tool-calls.ts";
import { WarmTurns } from "./warm-turns.ts";

export type { GrammarSpec } from "./grammar/spec.ts";
export type { ReplyEvent } from "./stream.ts";
export type { ChatMessage } from "./text/chat-messages.ts";
export { type ReasoningEffort, reasoningEfforts } from "./text/reasoning-effort.ts";
export type { ToolSpec } from "./text/tool-calls.ts";

/** What replies depend on, besides build and device: engines of one identity say the same. */
export interface EngineIdentity {
  /** 16 hex digits over weights, tokenizer, template, and what holds where a request doesn't say. */
  readonly weights: string;
  /** 16 hex digits of what the backend makes of a fixed prompt. */
  readonly probe: string;
}

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
  /** Absent: nobody asked for it. */
  readonly identity?: EngineIdentity;
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
  /** Of several replies to one request, which: each draws by a seed of its own, one more a reply. */
  readonly choice?: number;
  /** Each token comes with how likely it was, and with so many of the likeliest; null: without. */
  readonly topLogprobs?: number | null;
  /**
   * What the reply may say behind its reasoning, as `Engine.grammar` gave it: one reply's own. Eos ends
   * it then, whatever `ignoreEos` says.
   */
  readonly grammar?: ReplyGrammar | null;
}

export interface ChatRequest extends ReplyRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly ToolSpec[] | null;
  /** Variables for the template, such as enable_thinking. */
  readonly templateKwargs?: Readonly<Record<string, unknown>>;
  /** How much to think, for templates that name levels; "none" switches it off in all. */
  readonly reasoningEffort?: ReasoningEffort | null;
  /** Tokens of a think block, behind which it is closed; null: as many as the model takes. */
  readonly thinkingBudget?: number | null;
  /** False: the reply ends behind its first call. */
  readonly parallelToolCalls?: boolean;
}

export interface CompletionRequest extends ReplyRequest {
  /** Text, or token ids as they are. */
  readonly prompt: string | readonly TokenId[];
  /** The prompt's tokens come with how likely they were, like the reply's. Then nothing is cached. */
  readonly promptLogprobs?: boolean;
}

/** What makes a chat's prompt. */
export type PromptRequest = Pick<
  ChatRequest,
  "messages" | "tools" | "templateKwargs" | "reasoningEffort"
>;

/** A request on its way to the rounds. */
interface Submission {
  readonly promptIds: readonly TokenId[];
  readonly request: ReplyRequest & Pick<CompletionRequest, "promptLogprobs">;
  readonly text: ReplyTextOptions;
  readonly block: ThinkBlock | null;
}

export interface EngineInfo {
  readonly model: string;
  readonly contextTokens: number;
  readonly backend: BackendInfo;
  readonly chat: boolean;
  /** How tokens are drawn where a request doesn't say. */
  readonly sampling: SamplingDefaults;
  /** What cached prompts may take; 0: nothing is cached. */
  readonly promptCacheBytes: number;
  /** Null where nobody asked for it. */
  readonly identity: EngineIdentity | null;
}

/** A loaded model on a backend. */
export class Engine implements AsyncDisposable {
  readonly #parts: EngineParts;
  readonly #loop: RoundLoop;
  readonly #warmTurns: WarmTurns;
  readonly #clock: Clock;
  #grammars: Promise<Grammars> | null = null;

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
    const { model, contextTokens, template, sampling, cache, identity = null } = this.#parts;
    return {
      model,
      contextTokens,
      backend: this.#loop.info,
      chat: template !== null,
      sampling,
      promptCacheBytes: cache?.bytesMax ?? 0,
      identity,
    };
  }

  /** Requests that wait, and those that have a slot. */
  get counts(): LoopCounts {
    return this.#loop.counts;
  }

  /** What has been done since the engine was opened. */
  get totals(): LoopTotals {
    return this.#loop.totals;
  }

  /** Pages that streams hold, of all there are. */
  get pages(): { readonly held: number; readonly total: number } {
    return this.#loop.pages;
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
   * Encodes a long prompt with turns for others in between, so that who asks for it next, with `chat`,
   * `complete`, `tokenize` or `promptOf`, has its tokens at once. What is wrong with it is theirs to say.
   */
  async prepare(prompt: string | PromptRequest): Promise<void> {
    const isText = typeof prompt === "string";
    const characters = isText ? prompt.length : JSON.stringify(prompt).length;
    if (characters < turnCharacters) return;
    try {
      const text = isText ? prompt : this.#renderer(prompt)(prompt.messages);
      if (text.length <= this.#charsMax) await this.#parts.tokenizer.encodeInTurns(text);
    } catch {}
  }

  /**
   * Replies to a conversation.
   * @throws InputError, ContextLengthError, TextLengthError, QueueFullError
   */
  chat(request: ChatRequest): Stream {
    const conversation = this.#conversation(request);
    const tools = toolsOf(request);
    const { promptIds, reasoningOpen } = conversation;
    const chat = { reasoningOpen, tools, oneCall: request.parallelToolCalls === false };
    const text = { stop: request.stop ?? [], chat };
    const block = reasoningOpen ? this.#thinkBlock(request) : null;
    const parts = { promptIds, request, text, block };
    if (!this.#caches(request)) return this.#submit(parts, null);
    const stream = this.#submit(parts, () => conversation.marks);
    // Nobody waits for it: whatever becomes of it, the next turn is only slower.
    stream.result.then((reply) => this.#warm(conversation, reply)).catch(() => {});
    return stream;
  }

  /**
   * Continues a text or a list of token ids.
   * @throws InputError, ContextLengthError, TextLengthError, QueueFullError
   */
  complete(request: CompletionRequest): Stream {
    const { prompt } = request;
    // The caller's array may change while the reply runs.
    const ids = typeof prompt === "string" ? this.tokenize(prompt) : [...prompt];
    const { promptLogprobs = false, topLogprobs } = request;
    if (promptLogprobs) checkChances(ids.length, topLogprobs ?? 0);
    const caches = this.#caches(request) && !promptLogprobs;
    const marks = caches ? () => marksOfText(ids.length) : null;
    const text = { stop: request.stop ?? [], chat: null };
    return this.#submit({ promptIds: ids, request, text, block: null }, marks);
  }

  /**
   * A text's tokens; special tokens written in it are recognised.
   * @throws TextLengthError
   */
  tokenize(text: string): TokenId[] {
    return this.#encode(text, "prompt");
  }

  /**
   * The prompt that a chat request becomes.
   * @throws InputError, TextLengthError
   */
  promptOf(request: PromptRequest): readonly TokenId[] {
    return this.#conversation(request).promptIds;
  }

  /**
   * The text of tokens, special ones among them.
   * @throws InputError for ids that the vocabulary doesn't have
   */
  textOf(prompt: string | readonly TokenId[]): string {
    if (typeof prompt === "string") return prompt;
    this.#checkIds(prompt, "tokens");
    return this.#parts.tokenizer.decode(prompt);
  }

  /**
   * What holds one reply to a form: for `ReplyRequest.grammar`.
   * @param param the request's field that asked for it
   * @throws InputError naming that field for one that can't be held to
   */
  async grammar(spec: GrammarSpec, param?: string): Promise<ReplyGrammar> {
    const { tokenizer, eosIds } = this.#parts;
    const { vocabSize } = this.info.backend.shape;
    // Loaded for those who ask for it.
    this.#grammars ??= import("./grammar/grammars.ts").then(
      ({ Grammars }) => new Grammars(tokenizer, eosIds, vocabSize),
      (cause: unknown) => {
        // In a browser it comes over the network: the next who asks tries again.
        this.#grammars = null;
        throw cause;
      },
    );
    return await (await this.#grammars).grammar(spec, param);
  }

  /** Resolves when nobody is served, nothing is computed for next turns, and what was evicted is on disk. */
  async settled(): Promise<void> {
    await this.#loop.settled();
  }

  /** Cancels every stream, waits for their ends and gives the backend back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
  }

  #conversation(request: PromptRequest): Conversation {
    const tokenizer = { encode: (text: string) => this.#encode(text, "messages") };
    return new Conversation(this.#renderer(request), tokenizer, request.messages);
  }

  /** What makes a text of messages, as the request says. */
  #renderer(request: PromptRequest): (messages: readonly ChatMessage[]) => string {
    const { template, thinking } = this.#parts;
    if (!template) {
      throw new InputError(`${this.info.model} has no chat template: complete a text instead.`);
    }
    const effort = effortKwargs(request.reasoningEffort ?? null, template.effortLevels);
    const kwargs = { enable_thinking: thinking, ...effort, ...request.templateKwargs };
    const options = { tools: toolsOf(request), addGenerationPrompt: true, kwargs };
    return (messages) => template.render(messages, options);
  }

  /** Of a prompt's text. */
  get #charsMax(): number {
    return Math.max(promptCharsMin, promptCharsPerTokenMax * this.#parts.contextTokens);
  }

  /** What is too long by far is refused unread: nobody else is served while a text is encoded. */
  #encode(text: string, param: string): TokenId[] {
    const { contextTokens, tokenizer } = this.#parts;
    if (text.length <= this.#charsMax) return tokenizer.encode(text);
    throw new TextLengthError(contextTokens, text.length, this.#charsMax, param);
  }

  /** @throws InputError for a budget where blocks can't be counted */
  #thinkBlock(request: ChatRequest): ThinkBlock | null {
    const { thinkingBudget = null, grammar = null } = request;
    if (thinkingBudget === null && grammar === null) return null;
    const { tokenizer } = this.#parts;
    const closingId = tokenizer.idOf("</think>");
    if (closingId === undefined) {
      const message = `${this.info.model} has no token that closes a think block.`;
      const param = thinkingBudget === null ? "response_format" : "thinking_budget";
      throw new InputError(message, param, "unsupported_parameter");
    }
    const closing = tokenizer.encode("\n</think>\n\n");
    const between = tokenizer.encode("\n\n");
    const callId = (toolsOf(request) && tokenizer.idOf("<tool_call>")) ?? null;
    const ends = [...this.#parts.eosIds, ...(callId === null ? [] : [callId])];
    const goesOn = allTokensBut(ends, this.info.backend.shape.vocabSize);
    return { closingId, callId, budget: thinkingBudget, closing, between, goesOn };
  }

  #caches({ cachePrompt = true }: ReplyRequest): boolean {
    return cachePrompt && this.info.promptCacheBytes > 0;
  }

  /** @param marks found once the request is accepted; null: the prompt cache is of no concern to it */
  #submit(
    { promptIds, request, text: options, block }: Submission,
    marks: (() => readonly PrefixMark[]) | null,
  ): Stream {
    const param = options.chat ? "messages" : "prompt";
    this.#checkPrompt(promptIds, param);
    const promptChances = request.promptLogprobs ?? false;
    const asked = request.maxTokens ?? null;
    const maxTokens = this.#maxTokens(promptIds.length, asked, param, promptChances ? 0 : 1);
    const { choice = 0, grammar = null, topLogprobs = null } = request;
    const drawn = withSeed(resolveSampling(request, this.#parts.sampling), promptIds);
    const sampling = { ...drawn, seed: BigInt.asUintN(64, drawn.seed + BigInt(choice)) };
    this.#checkIds(sampling.adjust.logitBias.keys(), "logit_bias");
    const text = new ReplyText(this.#parts.tokenizer, options);
    const logprobs = { reply: topLogprobs !== null, prompt: promptChances };
    const stream = new Stream(promptIds, text, this.#clock, logprobs);
    const eosIds = new Set(request.ignoreEos && !grammar ? [] : this.#parts.eosIds);
    const { fingerprint = false, draft = true, priority = "foreground" } = request;
    const round = {
      promptIds,
      maxTokens,
      sampling,
      eosIds,
      fingerprint,
      draft,
      priority,
      ...((block || grammar) && { constraint: new ReplyConstraint(block, grammar, maxTokens) }),
      ...(topLogprobs !== null && { topChances: topLogprobs }),
      ...(promptChances && { promptChances }),
    };
    this.#loop.checkRoom(round);
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

  #maxTokens(promptTokens: number, asked: number | null, param: string, least: number): number {
    const { contextTokens } = this.info;
    if (asked !== null && !(Number.isSafeInteger(asked) && asked >= least)) {
      const rule = `max_tokens must be a whole number of at least ${least}, not ${asked}.`;
      throw new InputError(rule, "max_tokens");
    }
    const room = contextTokens - promptTokens;
    if (room < (asked ?? least)) {
      throw new ContextLengthError(contextTokens, promptTokens, asked, param);
    }
    return asked ?? Math.min(this.#parts.maxTokens ?? replyTokensDefault, room);
  }
}

/** @throws InputError for more than may be held */
function checkChances(promptTokens: number, top: number): void {
  const chances = promptTokens * (top + 1);
  if (chances <= promptChancesMax) return;
  const words = `The prompt's ${promptTokens} tokens with ${top} others each are ${chances} chances; `;
  throw new InputError(`${words}${promptChancesMax} are the most.`, "logprobs", "too_many");
}

/** None is as good as absent. */
const toolsOf = ({ tools }: PromptRequest): readonly ToolSpec[] | null =>
  tools && tools.length > 0 ? tools : null;

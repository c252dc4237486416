/**
 * Every error that a user can meet, each with a stable `code`, the HTTP `status` it becomes, and
 * what to do about it in the message. Bugs are thrown as `InvariantError`.
 */
export class DeltafoldError extends Error {
  readonly code: string;
  readonly status: number;
  /** The request field at fault, in OpenAI's error shape. */
  readonly param: string | null;

  constructor(
    code: string,
    message: string,
    options: { status?: number; param?: string | null; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.status = options.status ?? 500;
    this.param = options.param ?? null;
  }
}

/** A checkpoint file that is missing, truncated, lying or unsupported. Names the file and the field. */
export class CheckpointError extends DeltafoldError {
  constructor(file: string, detail: string, cause?: unknown) {
    super("invalid_checkpoint", `${file}: ${detail}`, { status: 400, cause });
  }
}

/** A request, flag or argument that can never work as given. */
export class InputError extends DeltafoldError {
  constructor(message: string, param: string | null = null, code = "invalid_value") {
    super(code, message, { status: 400, param });
  }
}

/** Prompt and reply do not fit the context. Null where the request named no length of the reply. */
export class ContextLengthError extends DeltafoldError {
  readonly contextTokens: number;
  readonly promptTokens: number;
  readonly replyTokens: number | null;

  constructor(
    contextTokens: number,
    promptTokens: number,
    replyTokens: number | null,
    param = "messages",
  ) {
    const found =
      replyTokens === null
        ? `your ${param} resulted in ${promptTokens} tokens. Please reduce the length of the ${param}.`
        : `you requested ${promptTokens + replyTokens} tokens (${promptTokens} in the prompt, ` +
          `${replyTokens} for the reply). Please reduce the length of the prompt or the reply.`;
    super(
      "context_length_exceeded",
      `This model's maximum context length is ${contextTokens} tokens. However, ${found}`,
      { status: 400, param },
    );
    this.contextTokens = contextTokens;
    this.promptTokens = promptTokens;
    this.replyTokens = replyTokens;
  }
}

/** A text that is too long for the context by far: it is refused unread. */
export class TextLengthError extends InputError {
  constructor(contextTokens: number, chars: number, charsMax: number, param: string) {
    super(
      `This model's maximum context length is ${contextTokens} tokens. However, there are ${chars} ` +
        `characters in your ${param}; at most ${charsMax} are read. Please reduce the length of the ${param}.`,
      param,
      "context_length_exceeded",
    );
  }
}

/** More requests are waiting than the queue holds. */
export class QueueFullError extends DeltafoldError {
  /** After which a place should be free, as the latest requests went; null: none has ended yet. */
  readonly retryAfterSeconds: number | null;

  constructor(waiting: number, retryAfterSeconds: number | null) {
    super("queue_full", `${waiting} requests are already waiting. Try again later.`, {
      status: 429,
    });
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** A request that would not fit the KV memory if it had all of it. */
export class RequestTooLargeError extends DeltafoldError {
  constructor(tokens: number, places: number) {
    super(
      "request_too_large",
      `The request needs room for ${tokens} tokens of prompt and reply; there is room for ${places}.`,
      { status: 400 },
    );
  }
}

/** What does not fit the memory at hand, in both numbers. */
export type MemorySentence = (needed: string, budget: string) => string;

export const modelSentence: MemorySentence = (needed, budget) =>
  `The model needs ${needed}, ${budget} are free.`;

/** The sentence with both numbers, in MiB. */
export function memoryText(
  neededBytes: number,
  budgetBytes: number,
  sentence: MemorySentence,
): string {
  const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  return sentence(mib(neededBytes), mib(budgetBytes));
}

/** Weights, states and caches would not fit the memory at hand. Both numbers are in the message. */
export class MemoryError extends DeltafoldError {
  constructor(
    neededBytes: number,
    budgetBytes: number,
    hint: string,
    sentence: MemorySentence = modelSentence,
  ) {
    const text = memoryText(neededBytes, budgetBytes, sentence);
    super("out_of_memory", `${text} ${hint}`, { status: 503 });
  }
}

/** The backend failed while work was in flight, or could not be opened. */
export class BackendError extends DeltafoldError {
  constructor(message: string, cause?: unknown, code = "backend_error", status = 500) {
    super(code, message, { status, cause });
  }
}

/** The device is gone, and all that was on it. An engine opens another for the next request. */
export class BackendLostError extends BackendError {
  constructor(message: string, cause?: unknown) {
    super(message, cause, "backend_lost", 503);
  }
}

/** The forward pass produced a logit that is not a finite number; the stream's state is not kept. */
export class NonFiniteLogitsError extends DeltafoldError {
  constructor(position: number) {
    super("non_finite_logits", `The model produced a non-finite logit at position ${position}.`);
  }
}

/** A broken invariant: a bug in deltafold, never a user's fault. */
export class InvariantError extends DeltafoldError {
  constructor(message: string) {
    super("internal_error", `deltafold bug: ${message}`);
  }
}

/** What was thrown, in words. */
export const messageOf = (cause: unknown): string =>
  cause instanceof Error ? cause.message : String(cause);

/** Throws an `InvariantError` unless the condition holds: `message` says what must not be. */
export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

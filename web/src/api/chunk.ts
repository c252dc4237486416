/** A chunk of a streamed chat, as far as the page reads it. */
export interface Chunk {
  readonly choices?: readonly {
    readonly delta?: Delta;
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: Usage | null;
  readonly timings?: {
    readonly prefill_ms?: number;
    readonly decode_ms?: number;
    readonly tokens_per_second?: number;
    readonly cache_miss_reason?: string;
  };
  readonly speculative?: {
    readonly rounds?: number;
    readonly drafted?: number;
    readonly accepted?: number;
    readonly tokens_per_round?: number | null;
  };
  readonly token_sha?: string;
}

export interface Delta {
  readonly content?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly CallDelta[];
}

/** The first of a call brings its id and name; its arguments come in pieces. */
export interface CallDelta {
  readonly index: number;
  readonly id?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

interface Usage {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number };
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number };
}

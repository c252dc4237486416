import { ApiError, refusalOf } from "./api-error.ts";
import { chunksOf } from "./chat-events.ts";
import type { Chunk } from "./chunk.ts";

/** A model that the server has. */
export interface ModelInfo {
  readonly id: string;
  /** Prompt and reply together; null where the server doesn't say. */
  readonly contextTokens: number | null;
}

/** What the server says about itself, as far as the page shows it. */
export interface Health {
  readonly status?: string;
  readonly reason?: string;
  readonly model?: string;
  readonly backend?: { readonly name?: string; readonly device?: string };
  readonly memory?: Readonly<Record<string, number>>;
  readonly requests?: { readonly waiting?: number; readonly running?: number };
  readonly slots?: number;
  readonly prompt_cache?: {
    readonly entries?: number;
    readonly bytes?: number;
    readonly bytes_max?: number;
  };
}

type Fetch = (path: string, init: RequestInit) => Promise<Response>;

/** The API of the server that the page came from. */
export class Server {
  readonly #fetch: Fetch;
  readonly #key: () => string;

  /**
   * @param fetch takes paths relative to the page's folder, so that a proxy may add to them
   * @param key of the API, asked for at each request; empty for none
   */
  constructor(fetch: Fetch, key: () => string) {
    this.#fetch = fetch;
    this.#key = key;
  }

  /** @throws ApiError */
  async models(): Promise<readonly ModelInfo[]> {
    const { data } = (await (await this.#ask("v1/models")).json()) as {
      data: readonly { id: string; context_length?: number }[];
    };
    return data.map(({ id, context_length: contextTokens }) => ({
      id,
      contextTokens: contextTokens ?? null,
    }));
  }

  /** A server that is not well says so with a status of its own. @throws ApiError */
  async health(): Promise<Health> {
    return (await (await this.#ask("health", {}, [503])).json()) as Health;
  }

  /** In Prometheus's text format. @throws ApiError */
  async metrics(): Promise<string> {
    return await (await this.#ask("metrics")).text();
  }

  /**
   * The chunks of a reply. Aborting ends the request, and the server frees its slot.
   * @throws ApiError, or the signal's reason
   */
  async *chat(body: object, signal: AbortSignal): AsyncGenerator<Chunk, void> {
    const headers = { "Content-Type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(body), signal };
    const response = await this.#ask("v1/chat/completions", init);
    try {
      yield* chunksOf(response.body!);
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof ApiError ? error : unreachable();
    }
  }

  async #ask(path: string, init: RequestInit = {}, alsoFine: number[] = []): Promise<Response> {
    const key = this.#key();
    const headers = { ...init.headers, ...(key !== "" && { Authorization: `Bearer ${key}` }) };
    let response: Response;
    try {
      response = await this.#fetch(path, { ...init, headers });
    } catch {
      init.signal?.throwIfAborted();
      throw unreachable();
    }
    if (response.ok || alsoFine.includes(response.status)) return response;
    throw await refusalOf(response);
  }
}

const unreachable = (): ApiError => new ApiError("The server can't be reached.", null);

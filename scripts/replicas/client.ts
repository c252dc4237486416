/** A client that talks through the balancer, or to a replica itself. */

export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string | readonly { readonly type: "text"; readonly text: string }[];
}

export const user = (content: string): Message => ({ role: "user", content });

/** As in OpenAI's replies, as far as it is looked at here. */
interface Chat {
  readonly choices: readonly [{ readonly message: { readonly content: string | null } }];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
}

interface PostOptions {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export const post = (
  url: string,
  body: object,
  { path = "/v1/chat/completions", headers, signal }: PostOptions = {},
): Promise<Response> =>
  fetch(url + path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });

export async function answered(asked: Promise<Response>): Promise<Chat> {
  const response = await asked;
  if (response.status === 200) return (await response.json()) as Chat;
  throw new Error(`status ${response.status}: ${await response.text()}`);
}

/** A streamed reply that goes on for as long as the context holds, unless it is given a length. */
export class Stream {
  /** The data of its events. */
  readonly events: string[] = [];
  /** Resolves with whether it came to its end. */
  readonly whole: Promise<boolean>;
  readonly #hangUp = new AbortController();
  readonly #first = Promise.withResolvers<void>();

  constructor(url: string, messages: readonly Message[], tokens = 3000) {
    const body = { messages, stream: true, temperature: 0, ignore_eos: true, max_tokens: tokens };
    this.whole = this.#read(url, body).catch(() => false);
    // One that ends without an event never begins.
    void this.whole.then(() => this.#first.reject(new Error("the stream ended before it began")));
    this.#first.promise.catch(() => {});
  }

  /** Resolves with its first event. */
  async begun(): Promise<this> {
    await this.#first.promise;
    return this;
  }

  hangUp(): void {
    this.#hangUp.abort();
  }

  async #read(url: string, body: object): Promise<boolean> {
    const response = await post(url, body, { signal: this.#hangUp.signal });
    if (response.status !== 200) throw new Error(`status ${response.status}`);
    let rest = "";
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + part).split("\n\n");
      rest = parts.pop()!;
      this.events.push(...parts.filter((event) => event.startsWith("data: ")));
      if (this.events.length > 0) this.#first.resolve();
    }
    const wasCut = this.events.some((event) => event.startsWith('data: {"error"'));
    return this.events.at(-1) === "data: [DONE]" && !wasCut;
  }
}

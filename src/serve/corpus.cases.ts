/** Records exchanges with a server that says the same each time, as texts that can be compared and read. */
import { type Clock, nextTask } from "../clock.ts";
import { Script, type TestOptions, type TestServer, testServer } from "./engine.cases.ts";
import type { RequestEntry } from "./request-log.ts";

/** A request, and what the model says to it. */
export interface Ask {
  readonly what: string;
  /** POST unless said. */
  readonly method?: string;
  readonly path: string;
  /** Besides the type of a JSON body, unless these are all. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly headersAreAll?: boolean;
  /** Ids of the exchange before may stand in it as they are recorded. */
  readonly body?: object | string | Uint8Array<ArrayBuffer> | null;
  readonly says?: string;
  /** Whether it goes on from the exchange before: the same ids have the same names. */
  readonly goesOn?: boolean;
  /** The client goes after so many events. */
  readonly leavesAfter?: number;
}

export interface CorpusGroup {
  readonly name: string;
  readonly server?: TestOptions;
  /** Whether what the server logs is recorded too. */
  readonly logs?: boolean;
  readonly asks: readonly Ask[];
}

/** Time stands still, so that no reply differs by how long it took. */
export const still: Clock = { nowMs: () => 0, unixSeconds: () => 1_700_000_000 };

/** Longer requests are recorded by their length. */
const bodyCharsMax = 2000;

/** Ids that the server makes up: as `randomId` does. */
const madeUpId = /\b(chatcmpl-|cmpl-|resp_|rs_|msg_|fc_|call_|toolu_|req_)[a-z2-7]{24}\b/g;

/** Made-up ids and the names they are recorded by, in the order in which they came. */
export class IdNames {
  readonly #names = new Map<string, string>();

  clear(): void {
    this.#names.clear();
  }

  /** A text with names in place of ids. */
  hide(text: string): string {
    return text.replace(madeUpId, (id, prefix: string) => {
      const known = this.#names.get(id);
      if (known !== undefined) return known;
      const count = [...this.#names.keys()].filter((each) => each.startsWith(prefix)).length;
      const name = `<${prefix}${count + 1}>`;
      this.#names.set(id, name);
      return name;
    });
  }

  /** A text with ids in place of their names. */
  show(text: string): string {
    return [...this.#names].reduce((all, [id, name]) => all.replaceAll(name, id), text);
  }
}

/** @returns each exchange as a text, in order */
export async function record(group: CorpusGroup): Promise<string[]> {
  const recorder = new Recorder(group);
  const exchanges: string[] = [];
  for (const ask of group.asks) exchanges.push(await recorder.exchange(ask));
  await recorder.end();
  return exchanges;
}

class Recorder {
  readonly #script = new Script();
  readonly #server: TestServer;
  readonly #logs: boolean;
  readonly #ids = new IdNames();
  readonly #entries: RequestEntry[] = [];

  constructor({ server = {}, logs = false }: CorpusGroup) {
    this.#logs = logs;
    this.#server = testServer({
      logits: this.#script.logits,
      contextTokens: 1024,
      ...server,
      parts: { clock: still, cache: { bytesMax: 0, spill: null }, ...server.parts },
      app: {
        clock: still,
        pingMs: 0,
        setAlarm: () => () => {},
        onEnd: (entry) => this.#entries.push(entry),
        ...server.app,
      },
    });
  }

  async exchange(ask: Ask): Promise<string> {
    if (!ask.goesOn) this.#ids.clear();
    this.#script.say(ask.says ?? "");
    const seen = this.#entries.length;
    const sent = requestText(ask);
    const reply = await this.#answer(ask);
    while (this.#entries.length === seen) await nextTask();
    const log = this.#logs ? `\n= ${JSON.stringify(logged(this.#entries.at(-1)!, ask))}` : "";
    return this.#ids.hide(`${sent}\n${reply}${log}`);
  }

  async end(): Promise<void> {
    const { engine, reported } = this.#server;
    await engine[Symbol.asyncDispose]();
    if (reported.length > 0) throw new Error(`the server reported ${reported[0]}`);
  }

  async #answer(ask: Ask): Promise<string> {
    const { method = "POST", path, leavesAfter } = ask;
    const body = bodyOf(ask);
    const written = typeof body === "string" ? this.#ids.show(body) : body;
    const leaving = new AbortController();
    const response = await this.#server.app.request(this.#ids.show(path), {
      method,
      headers: headersOf(ask),
      signal: leaving.signal,
      ...(written !== null && { body: written }),
    });
    const headers = [...response.headers].map(([name, value]) => `< ${name}: ${value}`);
    const text =
      leavesAfter === undefined
        ? await response.text()
        : await firstEvents(response, leavesAfter, leaving);
    const lines = text === "" ? [] : [bodyText(text)];
    return [`< ${response.status}`, ...headers, ...lines].join("\n");
  }
}

/** Reads so many events and goes. */
async function firstEvents(
  response: Response,
  events: number,
  leaving: AbortController,
): Promise<string> {
  const reader = response.body!.getReader();
  let text = "";
  while (text.split("\n\n").length <= events) {
    const { value } = await reader.read();
    text += new TextDecoder().decode(value);
  }
  leaving.abort();
  await reader.cancel();
  return text;
}

function bodyOf({ method = "POST", body }: Ask): string | Uint8Array<ArrayBuffer> | null {
  if (body === undefined || body === null) return method === "POST" ? "{}" : null;
  return typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
}

const headersOf = (ask: Ask): Record<string, string> => ({
  ...(bodyOf(ask) !== null && !ask.headersAreAll && { "Content-Type": "application/json" }),
  ...ask.headers,
});

function requestText(ask: Ask): string {
  const { what, method = "POST", path, headers = {}, says } = ask;
  const body = bodyOf(ask);
  const shown =
    typeof body === "string" && body.length <= bodyCharsMax
      ? JSON.stringify(body).slice(1, -1).replaceAll('\\"', '"')
      : `(${body?.length} bytes)`;
  return [
    `## ${what}`,
    `> ${method} ${path}`,
    ...Object.entries(headers).map(([name, value]) => `> ${name}: ${value}`),
    ...(body === null ? [] : [`> ${shown}`]),
    ...(says === undefined ? [] : [`! ${JSON.stringify(says)}`]),
  ].join("\n");
}

/** JSON in lines, where that hides nothing of how it was written. */
function bodyText(text: string): string {
  if (!text.startsWith("{")) return text.trimEnd();
  const value: unknown = JSON.parse(text);
  return JSON.stringify(value) === text ? JSON.stringify(value, null, 1) : text;
}

/** How far a reply was when its client went depends on who was faster. */
const logged = (entry: RequestEntry, { leavesAfter }: Ask): object =>
  leavesAfter === undefined ? entry : { ...entry, reply_tokens: "some" };

import type { HttpReply } from "../reply-client.ts";
import type { CellResult } from "./gate-run.ts";
import type { HttpAsk, HttpWay } from "./http-asks.ts";
import type { CommandReplies, Said } from "./http-commands.ts";

/** An ask, and how it is asked. */
export type HttpTurn = readonly [ask: HttpAsk, way: HttpWay];

/** Replies of a server, each beside the command line's. */
export class HttpCells {
  /** Of replies with drafts, by prompt. */
  readonly drafts: Map<string, number> = new Map();
  readonly #url: string;
  readonly #commands: CommandReplies;

  constructor(url: string, commands: CommandReplies) {
    this.#url = url;
    this.#commands = commands;
  }

  async alone(turn: HttpTurn): Promise<CellResult> {
    const [expected, reply] = [await this.#expected(turn), await this.#reply(turn)];
    const detail = differenceOf(expected, reply) ?? this.#wrongDrafts(turn, reply);
    return detail === null ? { ok: true, detail: describe(reply) } : { ok: false, detail };
  }

  /** Requests that share the server. */
  async together(turns: readonly HttpTurn[]): Promise<CellResult> {
    const expected: Said[] = [];
    for (const turn of turns) expected.push(await this.#expected(turn));
    const replies = await Promise.all(turns.map((turn) => this.#reply(turn)));
    const details = replies.flatMap((reply, at) => {
      const difference = differenceOf(expected[at]!, reply);
      return difference === null ? [] : [`${turns[at]![0].name}: ${difference}`];
    });
    const tokens = replies.reduce((sum, reply) => sum + reply.tokens, 0);
    if (details.length > 0) return { ok: false, detail: details.join("; ") };
    return { ok: true, detail: `${turns.length} replies of ${tokens} tokens` };
  }

  /** Whether the command line replies the same with drafts. */
  async command(ask: HttpAsk): Promise<CellResult> {
    const [plain, drafted] = [
      await this.#commands.reply(ask, false),
      await this.#commands.reply(ask, true),
    ];
    const detail = differenceOf(plain, drafted);
    return { ok: detail === null, detail: detail ?? describe(plain) };
  }

  /** Serially decoded: what all others have to be. */
  async #expected([ask]: HttpTurn): Promise<Said> {
    return await this.#commands.reply(ask, false);
  }

  async #reply([{ form, kind, fields }, { drafted, streamed }]: HttpTurn): Promise<HttpReply> {
    const body = { ...form.body(kind, fields), draft: drafted };
    const url = this.#url + form.path;
    return streamed ? await form.streamed(url, body) : await form.whole(url, body);
  }

  #wrongDrafts([ask, { drafted }]: HttpTurn, { speculative, tokens }: HttpReply): string | null {
    const { rounds, drafted: drafts } = speculative;
    const said = `${rounds} rounds for ${tokens} tokens`;
    if (drafted) {
      this.drafts.set(ask.prompt, (this.drafts.get(ask.prompt) ?? 0) + drafts);
      return rounds > 0 || tokens === 1 ? null : said;
    }
    if (drafts > 0) return `${drafts} drafts for a plain reply`;
    return rounds === tokens - 1 ? null : said;
  }
}

/** The first thing that two replies don't say alike; null where there is none. */
function differenceOf(expected: Said, actual: Said): string | null {
  const fields = [
    "tokens",
    "tokenSha",
    "promptTokens",
    "finishReason",
    "text",
    "reasoning",
  ] as const satisfies readonly (keyof Said)[];
  for (const field of fields) {
    const [right, found] = [JSON.stringify(expected[field]), JSON.stringify(actual[field])];
    if (found !== right) return `${field}: ${found}, not ${right}`;
  }
  return null;
}

const describe = ({ tokens, tokenSha, finishReason }: Said): string =>
  `${tokens} tokens, ${tokenSha}, ${finishReason}`;

import type { TokenId } from "../../ids.ts";
import { outputOf, ownProgram, ServerProcess } from "../own-process.ts";
import type { HttpReply } from "../reply-client.ts";
import type { HttpAsk } from "./http-asks.ts";

/** The commands that the gate is about. */
export interface HttpCommands {
  /** Resolves with what `run` prints. */
  run(args: readonly string[]): Promise<string>;
  /** Resolves once `serve` serves. */
  serve(args: readonly string[]): Promise<{ readonly url: string } & AsyncDisposable>;
}

/** Each in a process of its own. */
export const ownCommands: HttpCommands = {
  run: (args) => outputOf(ownProgram, ["run", ...args]),
  serve: (args) => ServerProcess.start(ownProgram, args),
};

/** What two replies have in common where they are the same. */
export type Said = Omit<HttpReply, "speculative">;

/** What `run --json` prints, as far as it is compared. */
interface RunReply {
  readonly ids: readonly TokenId[];
  readonly text: string;
  readonly reasoning: string;
  readonly finish_reason: string;
  readonly prompt_tokens: number;
  readonly token_sha: string;
}

/** What the command line replies, each reply computed once. */
export class CommandReplies {
  readonly #run: HttpCommands["run"];
  readonly #args: readonly string[];
  readonly #encode: (text: string) => readonly TokenId[];
  readonly #replies = new Map<string, Promise<Said>>();

  /**
   * @param args the model, and flags of how it is computed
   * @param encode makes ids of a raw prompt, which the command line takes no other way
   */
  constructor(
    run: HttpCommands["run"],
    args: readonly string[],
    encode: (text: string) => readonly TokenId[],
  ) {
    this.#run = run;
    this.#args = args;
    this.#encode = encode;
  }

  /** @throws DeltafoldError where the command fails */
  async reply(ask: HttpAsk, drafted: boolean): Promise<Said> {
    const args = [...this.#args, ...this.#promptArgs(ask), ...fieldArgs(ask)];
    if (!drafted) args.push("--no-drafts");
    const key = args.join(" ");
    const known = this.#replies.get(key) ?? this.#run([...args, "--json"]).then(saidBy);
    this.#replies.set(key, known);
    return await known;
  }

  #promptArgs({ kind, form }: HttpAsk): string[] {
    if (!form.raw) return ["-p", kind.asked];
    return ["--ids", JSON.stringify(this.#encode(kind.begun)), "--ignore-eos"];
  }
}

const fieldArgs = ({ fields }: HttpAsk): string[] =>
  Object.entries(fields).flatMap(([field, value]) => [`--${field.replace("_", "-")}`, `${value}`]);

function saidBy(printed: string): Said {
  const { ids, text, reasoning, ...rest }: RunReply = JSON.parse(printed);
  return {
    text,
    reasoning,
    finishReason: rest.finish_reason,
    promptTokens: rest.prompt_tokens,
    tokens: ids.length,
    tokenSha: rest.token_sha,
  };
}

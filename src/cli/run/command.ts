import { Command, Option } from "commander";
import { readConfig } from "../../checkpoint/config.ts";
import { openFolder } from "../../checkpoint/source-node.ts";
import { InputError } from "../../errors.ts";
import type { TokenId } from "../../ids.ts";
import { openTemplate } from "../../open-text.ts";
import type { CliIo } from "../io.ts";
import { loadEngine } from "../load.ts";
import {
  addModelOptions,
  addReplyOptions,
  jsonOption,
  type ModelFlags,
  openOptions,
  quietOption,
  type ReplyFlags,
} from "../options.ts";
import { findModel } from "../pull/find.ts";
import { pulledArgument, type YesFlags, yesOption } from "../pull/options.ts";
import { addCacheOptions, type CacheFlags, cacheOptions } from "../stream-options.ts";
import { timed } from "../timed.ts";
import { idsValue, seedValue, stopValue } from "../values.ts";
import { chat } from "./chat.ts";
import { type Prompt, reply } from "./one-shot.ts";
import { readText } from "./stdin.ts";

interface RunFlags extends ModelFlags, ReplyFlags, CacheFlags, YesFlags {
  readonly prompt?: string;
  readonly ids?: readonly TokenId[];
  readonly system?: string;
  readonly seed?: bigint;
  readonly stop: readonly string[];
  readonly ignoreEos?: true;
  readonly json?: true;
  readonly quiet?: true;
}

const help = `
Without -p and --ids, run reads one prompt from standard input, or chats where that is a terminal.
The reply goes to standard output and everything else to standard error. A model's reasoning is
shown dimmed on a terminal, and left out elsewhere; --json has it always.

Examples:
  deltafold run -p "Tell me a story about a lighthouse." --seed 7
  git diff | deltafold run --system "Summarise this change." --temperature 0
  deltafold run --ids '[40,1015,524]' --max-tokens 16 --json`;

export function runCommand(io: CliIo): Command {
  const command = new Command("run")
    .summary("chat with a model, or get one reply")
    .description("Chats with a model, or replies to one prompt.")
    .addArgument(pulledArgument())
    .option("-p, --prompt <text>", "reply to this and end")
    .addOption(
      new Option("--ids <json>", "continue these token ids as they are, without a template")
        .argParser(idsValue)
        .conflicts(["prompt", "system", "thinking"]),
    )
    .option("--system <text>", "the system message");
  addReplyOptions(command)
    .addOption(
      new Option("--seed <n>", "64 bits (default: derived from the prompt)").argParser(seedValue),
    )
    .addOption(
      new Option("--stop <text>", "end the reply where this would come; may be repeated")
        .argParser(stopValue)
        .default([], "none"),
    )
    .option("--ignore-eos", "go on past the model's own end, up to --max-tokens");
  return addCacheOptions(addModelOptions(command))
    .addOption(yesOption("pull a model that isn't here"))
    .addOption(jsonOption("print one JSON object: ids, text, hashes and timings"))
    .addOption(quietOption())
    .addHelpText("after", help)
    .action((model: string, flags: RunFlags) => run(io, model, flags));
}

async function run(io: CliIo, model: string, flags: RunFlags): Promise<void> {
  const asked = { ...openOptions(flags), ...cacheOptions(flags) };
  const prompt = await promptOf(io, flags);
  const load = { quiet: flags.quiet ?? false, yes: flags.yes ?? false };
  const { folder } = await findModel(io, model, { ...load, toOpen: asked });
  if (prompt?.kind !== "ids") await requireTemplate(folder);
  // Nothing comes after one reply, unless what it leaves outlives the process.
  const alone = prompt !== null && flags.spillGib === 0;
  const options = { ...(alone && { promptCacheBytes: 0 }), ...asked, parallel: 1 };
  const loaded = await timed(() => loadEngine(io, model, options, load));
  await using engine = loaded.value;
  const request = {
    maxTokens: flags.maxTokens ?? null,
    seed: flags.seed,
    stop: flags.stop,
    ignoreEos: flags.ignoreEos ?? false,
  };
  const { quiet } = load;
  if (prompt === null) await chat(io, engine, { system: flags.system ?? null, request, quiet });
  else await reply(io, engine, { prompt, request, quiet, json: jsonOf(flags, loaded.ms) });
}

/**
 * Text alone is no prompt for a model that was trained to chat, so it is never sent as it is. Looks
 * before minutes are spent on loading.
 *
 * @throws InputError; CheckpointError where the folder is no checkpoint at all
 */
async function requireTemplate(path: string): Promise<void> {
  const folder = await openFolder(path);
  await readConfig(folder);
  if ((await openTemplate(folder)) !== null) return;
  throw new InputError(
    `${folder.name} has no chat_template.jinja, so there is no chat with it. Continue token ids ` +
      "with --ids, or texts with `deltafold serve` and /v1/completions.",
  );
}

const jsonOf = (flags: RunFlags, loadMs: number) => (flags.json ? { loadMs } : null);

/** What to reply to; null for a chat. */
async function promptOf(io: CliIo, flags: RunFlags): Promise<Prompt | null> {
  const system = flags.system ?? null;
  if (flags.ids) return { kind: "ids", ids: flags.ids };
  if (flags.prompt === "") throw new InputError("The prompt of -p is empty.");
  if (flags.prompt !== undefined) return { kind: "text", text: flags.prompt, system };
  if (io.stdin.isTTY) {
    if (!flags.json) return null;
    throw new InputError("--json needs -p, --ids, or a prompt on standard input.");
  }
  const text = await readText(io.stdin);
  if (text !== "") return { kind: "text", text, system };
  throw new InputError("There is no prompt: give -p TEXT, or write one to standard input.");
}

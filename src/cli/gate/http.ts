import { openFolder } from "../../checkpoint/source-node.ts";
import { drafterPlace, modelFolder } from "../../node.ts";
import { openTemplate, openTokenizer } from "../../open-text.ts";
import { optionArgs } from "../option-args.ts";
import { healthOf } from "../reply-client.ts";
import { coverageCell } from "./event-counts.ts";
import { type CellResult, type GateRun, outOfTime } from "./gate-run.ts";
import { type HttpAsk, httpAsks, httpWays, wayName } from "./http-asks.ts";
import { HttpCells, type HttpTurn } from "./http-cells.ts";
import { CommandReplies, type HttpCommands, ownCommands } from "./http-commands.ts";
import type { GateOptions } from "./options.ts";

const replyTokens = 64;
/** Requests at once. */
const batchSize = 8;
/** After so many cells, every kind of reply has been drafted in every way. */
const coverageCellsMin = 32;

/**
 * What a server of its own replies, raw and in chats, plain and drafted, streamed and whole, is what the
 * command line replies: text, reasoning, tokens, and how many they are.
 */
export async function httpGate(run: GateRun, options: GateOptions): Promise<string> {
  return await httpOn(run, options, ownCommands);
}

interface HttpCell {
  readonly name: string;
  run(): Promise<CellResult>;
}

/** The gate over any commands, and replies of any length. */
export async function httpOn(
  run: GateRun,
  { model, choice, full }: Pick<GateOptions, "model" | "choice" | "full">,
  commands: HttpCommands,
  tokensMax: number = replyTokens,
): Promise<string> {
  if (!choice) {
    run.skip("all", "another process can't open this backend");
    return "none";
  }
  const args = [modelFolder(model), ...optionArgs(choice)];
  const folder = await openFolder(modelFolder(model));
  const tokenizer = await openTokenizer(folder, Number.POSITIVE_INFINITY);
  const hasChat = (await openTemplate(folder)) !== null;
  await using server = await commands.serve(args);
  const encode = (text: string) => tokenizer.encode(text);
  const cells = new HttpCells(server.url, new CommandReplies(commands.run, args, encode));
  if (!hasChat) run.skip("chats", "the model has no chat template");
  const asks = httpAsks(full, tokensMax).map((all) =>
    all.filter(({ form }) => form.raw || hasChat),
  );
  const all = asks.flatMap((some) => cellsOf(cells, some, full));
  await runCells(run, all);
  const drafter = drafterPlace(modelFolder(model), choice.drafter ?? "auto");
  const missing = undrafted(asks.flat(), cells.drafts, drafter !== null);
  const count = { ran: run.ran, least: coverageCellsMin };
  await coverageCell(run, count, Object.fromEntries(cells.drafts), missing);
  const { backend } = await healthOf(server.url);
  return `${backend.name}: ${backend.device}; ${backend.arithmetic}`;
}

async function runCells(run: GateRun, all: readonly HttpCell[]): Promise<void> {
  for (const [number, cell] of all.entries()) {
    if (run.isOver) {
      run.skip(`${all.length - number} of ${all.length} cells, from ${cell.name} on`, outOfTime);
      return;
    }
    await run.cell(cell.name, cell.run);
  }
}

function cellsOf(cells: HttpCells, asks: readonly HttpAsk[], full: boolean): HttpCell[] {
  const alone = asks.flatMap((ask) => [
    ...httpWays.map((way) => {
      return { name: `${ask.name}: ${wayName(way)}`, run: () => cells.alone([ask, way]) };
    }),
    ...(full ? [{ name: `${ask.name}: run with drafts`, run: () => cells.command(ask) }] : []),
  ]);
  const batches = httpWays.slice(0, full ? httpWays.length : 1).flatMap((first, number) =>
    groupsOf(mixed(asks, number), batchSize).map((turns) => {
      const name = `${turns.length} at once, from ${turns[0]![0].name}: ${wayName(first)} on`;
      return { name, run: () => cells.together(turns) };
    }),
  );
  return [...alone, ...batches];
}

const groupsOf = <T>(items: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, group) =>
    items.slice(group * size, (group + 1) * size),
  );

/** Neighbours are asked in different ways. */
const mixed = (asks: readonly HttpAsk[], first: number): HttpTurn[] =>
  asks.map((ask, at) => [ask, httpWays[(first + at) % httpWays.length]!]);

/** Prompts whose replies never had a draft, though they should have. */
function undrafted(
  asks: readonly HttpAsk[],
  drafts: ReadonlyMap<string, number>,
  hasDrafter: boolean,
): string[] {
  // Without one, drafts are copied from the text itself.
  const foreseen = asks.filter(({ kind }) => hasDrafter || kind.name === "copy");
  const prompts = new Set(foreseen.map(({ prompt }) => prompt));
  return [...prompts].filter((prompt) => !drafts.get(prompt)).map((name) => `no drafts: ${name}`);
}

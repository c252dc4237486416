import { resolve } from "node:path";
import { Command, Option } from "commander";
import { type AffineFormat, bitsAllowed, groupSizesAllowed } from "../../weights/affine.ts";
import type { ConvertOptions } from "../../weights/convert.ts";
import { convertCheckpoint, planConversion } from "../../weights/convert-node.ts";
import type { ModuleBits, Recipe } from "../../weights/convert-recipe.ts";
import type { AffineBits } from "../../weights/weights.ts";
import { InterruptedError } from "../exit.ts";
import { bytesText, secondsText } from "../format.ts";
import type { CliIo } from "../io.ts";
import { quietOption } from "../options.ts";
import { startProgress } from "../progress.ts";
import { findHere } from "../pull/find.ts";
import { timed } from "../timed.ts";
import { oneOf } from "../values.ts";
import { moduleBits } from "./recipe.ts";
import { summaryText } from "./summary.ts";

interface ConvertFlags extends AffineFormat {
  readonly mixed?: AffineBits;
  readonly bitsFor?: readonly ModuleBits[];
  readonly dryRun?: true;
  readonly quiet?: true;
}

export function convertCommand(io: CliIo): Command {
  return new Command("convert")
    .summary("quantise a checkpoint")
    .description(
      "Quantises a checkpoint, a DFlash2 drafter or a GGUF file to MLX's affine layout. OUT appears " +
        "whole or not at all.",
    )
    .argument(
      "<src>",
      "a folder of floats, fp8 or MLX's affine layout, such a model in the cache, or a .gguf file",
    )
    .argument("<out>", "the folder to make; it must not exist")
    .addOption(
      new Option("--bits <n>", "2, 3, 4, 5, 6 or 8").argParser(oneOf(bitsAllowed)).default(4),
    )
    .addOption(
      new Option("--group-size <n>", "values that share a scale: 32, 64 or 128")
        .argParser(oneOf(groupSizesAllowed))
        .default(64),
    )
    .addOption(
      new Option(
        "--mixed <n>",
        "bits of the head, and of v_proj and down_proj in some layers, as MLX's mixed recipes",
      ).argParser(oneOf(bitsAllowed)),
    )
    .addOption(
      new Option(
        "--bits-for <modules=n>",
        "bits of modules by path, * for any characters; keep: as stored (repeatable)",
      ).argParser(moduleBits),
    )
    .option("--dry-run", "say what would be written, and write nothing")
    .addOption(quietOption())
    .action((source: string, output: string, flags: ConvertFlags) =>
      flags.dryRun ? plan(io, source, flags) : convert(io, source, output, flags),
    );
}

async function plan({ stdout }: CliIo, source: string, flags: ConvertFlags): Promise<void> {
  stdout.write(summaryText(await planConversion(await sourceOf(source), recipeOf(flags))));
}

/** The path of what is converted. What is called as a GGUF file is no model of the hub. */
const sourceOf = async (source: string): Promise<string> =>
  source.endsWith(".gguf") ? resolve(source) : (await findHere(source)).folder;

function recipeOf({ bits, groupSize, mixed, bitsFor }: ConvertFlags): Recipe {
  return {
    bits,
    groupSize,
    ...(mixed !== undefined && { mixedBits: mixed }),
    ...(bitsFor !== undefined && { modules: bitsFor }),
  };
}

async function convert(
  io: CliIo,
  source: string,
  output: string,
  flags: ConvertFlags,
): Promise<void> {
  const quiet = flags.quiet ?? false;
  const { value, ms } = await timed(async () => {
    using progress = startProgress(io, "converting", quiet);
    return await untilInterrupted(io, async (signal) => {
      const onProgress: ConvertOptions["onProgress"] = ({ doneBytes, totalBytes }) =>
        progress.update(doneBytes, totalBytes);
      const options = { ...recipeOf(flags), onProgress, signal };
      return await convertCheckpoint(await sourceOf(source), resolve(output), options);
    });
  });
  if (quiet) return;
  io.stderr.write(`${output}: ${bytesText(value.bytes)} in ${secondsText(ms)}\n`);
  io.stderr.write(summaryText(value));
}

/** Gives `work` a signal that SIGINT and SIGTERM abort. */
async function untilInterrupted<T>(
  { signals }: CliIo,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const interrupt = () =>
    controller.abort(new InterruptedError("The conversion was stopped; nothing is left of it."));
  const names = ["SIGINT", "SIGTERM"];
  for (const name of names) signals.on(name, interrupt);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of names) signals.off(name, interrupt);
  }
}

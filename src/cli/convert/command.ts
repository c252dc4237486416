import { resolve } from "node:path";
import { Command, Option } from "commander";
import { InputError } from "../../errors.ts";
import { affineFormat } from "../../weights/affine.ts";
import type { ConvertOptions } from "../../weights/convert.ts";
import { convertCheckpoint } from "../../weights/convert-node.ts";
import { InterruptedError } from "../exit.ts";
import { bytesText, secondsText } from "../format.ts";
import type { CliIo } from "../io.ts";
import { quietOption } from "../options.ts";
import { startProgress } from "../progress.ts";
import { timed } from "../timed.ts";
import { wholeNumber } from "../values.ts";

interface ConvertFlags {
  readonly bits: number;
  readonly groupSize: number;
  readonly quiet?: true;
}

export function convertCommand(io: CliIo): Command {
  return new Command("convert")
    .summary("quantise a checkpoint")
    .description(
      "Quantises a float checkpoint, or a DFlash2 drafter, to MLX's affine layout. OUT appears " +
        "whole or not at all.",
    )
    .argument("<src>", "a checkpoint folder of bf16, f16 or f32")
    .argument("<out>", "the folder to make; it must not exist")
    .addOption(
      new Option("--bits <n>", "2, 3, 4, 5, 6 or 8").argParser(wholeNumber(2, 8)).default(4),
    )
    .addOption(
      new Option("--group-size <n>", "values that share a scale: 32, 64 or 128")
        .argParser(wholeNumber(32, 128))
        .default(64),
    )
    .addOption(quietOption())
    .action((source: string, output: string, flags: ConvertFlags) =>
      convert(io, source, output, flags),
    );
}

async function convert(
  io: CliIo,
  source: string,
  output: string,
  flags: ConvertFlags,
): Promise<void> {
  const { bits, groupSize } = flags;
  const quiet = flags.quiet ?? false;
  const format = affineFormat(bits, groupSize);
  if (format === null) {
    throw new InputError(
      `There is no format of --bits ${bits} and --group-size ${groupSize}: bits are 2, 3, 4, 5, ` +
        "6 or 8, and groups are of 32, 64 or 128.",
    );
  }
  let writtenBytes = 0;
  const { ms } = await timed(async () => {
    using progress = startProgress(io, "converting", quiet);
    await untilInterrupted(io, (signal) => {
      const onProgress: ConvertOptions["onProgress"] = ({ doneBytes, totalBytes }) => {
        writtenBytes = doneBytes;
        progress.update(doneBytes, totalBytes);
      };
      return convertCheckpoint(resolve(source), resolve(output), { ...format, onProgress, signal });
    });
  });
  if (quiet) return;
  const kind = `${bits} bits in groups of ${groupSize}`;
  io.stderr.write(`${output}: ${bytesText(writtenBytes)}, ${kind}, ${secondsText(ms)}\n`);
}

/** Gives `work` a signal that SIGINT and SIGTERM abort. */
async function untilInterrupted(
  { signals }: CliIo,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const controller = new AbortController();
  const interrupt = () =>
    controller.abort(new InterruptedError("The conversion was stopped; nothing is left of it."));
  const names = ["SIGINT", "SIGTERM"];
  for (const name of names) signals.on(name, interrupt);
  try {
    await work(controller.signal);
  } finally {
    for (const name of names) signals.off(name, interrupt);
  }
}

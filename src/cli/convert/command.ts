import { resolve } from "node:path";
import { Command, Option } from "commander";
import { type AffineFormat, bitsAllowed, groupSizesAllowed } from "../../weights/affine.ts";
import type { ConvertOptions, ConvertResult } from "../../weights/convert.ts";
import { convertCheckpoint } from "../../weights/convert-node.ts";
import { InterruptedError } from "../exit.ts";
import { bytesText, secondsText } from "../format.ts";
import type { CliIo } from "../io.ts";
import { quietOption } from "../options.ts";
import { startProgress } from "../progress.ts";
import { timed } from "../timed.ts";
import { oneOf } from "../values.ts";

interface ConvertFlags extends AffineFormat {
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
      new Option("--bits <n>", "2, 3, 4, 5, 6 or 8").argParser(oneOf(bitsAllowed)).default(4),
    )
    .addOption(
      new Option("--group-size <n>", "values that share a scale: 32, 64 or 128")
        .argParser(oneOf(groupSizesAllowed))
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
  let writtenBytes = 0;
  const { value, ms } = await timed(async () => {
    using progress = startProgress(io, "converting", quiet);
    return await untilInterrupted(io, (signal) => {
      const onProgress: ConvertOptions["onProgress"] = ({ doneBytes, totalBytes }) => {
        writtenBytes = doneBytes;
        progress.update(doneBytes, totalBytes);
      };
      const options = { bits, groupSize, onProgress, signal };
      return convertCheckpoint(resolve(source), resolve(output), options);
    });
  });
  if (quiet) return;
  const kind = `${bits} bits in groups of ${groupSize}`;
  io.stderr.write(`${output}: ${bytesText(writtenBytes)}, ${kind}, ${secondsText(ms)}\n`);
  io.stderr.write(matricesLine(value, groupSize));
}

/** How many matrices were quantised, and why others were not. */
function matricesLine({ quantized, keptColumns }: ConvertResult, groupSize: number): string {
  const kept = keptColumns.length;
  if (kept === 0) return `all ${quantized} matrices are quantised\n`;
  const columns = [...new Set(keptColumns)].sort((a, b) => a - b).join(", ");
  return (
    `${quantized} of ${quantized + kept} matrices are quantised; ${kept} keep their floats, ` +
    `because groups of ${groupSize} don't divide their columns (${columns})\n`
  );
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

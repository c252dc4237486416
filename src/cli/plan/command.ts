import { Command, Option } from "commander";
import { shapeNames } from "../../model/released-shapes.ts";
import type { AffineBits } from "../../weights/weights.ts";
import type { CliIo } from "../io.ts";
import {
  addModelOptions,
  checkShape,
  hereArgument,
  jsonOption,
  type ModelFlags,
  openOptions,
} from "../options.ts";
import { addServingOptions, type ServingFlags, servingOptions } from "../stream-options.ts";
import { planReport } from "./report.ts";
import { planText } from "./text.ts";

interface PlanFlags extends ModelFlags, ServingFlags {
  readonly shape?: string;
  readonly bits: AffineBits;
  readonly json?: true;
}

const help = `
Takes the flags by which serve is sized. Without --context it says the largest context that fits,
which is what serve and run take. --backend auto plans on the CPU and on the GPU.

Examples:
  deltafold plan ./Qwen3.5-2B-MLX-4bit
  deltafold plan --shape 27b --bits 4 --context 32768 --parallel 4 --backend webgpu
  deltafold plan --shape 9b --drafter dflash2 --backend webgpu --memory-gib 12`;

export function planCommand(io: CliIo): Command {
  const command = new Command("plan")
    .summary("say what a model would take, and whether it fits")
    .description(
      "Says what a model would take of this machine's memory or a GPU's, and the largest context that " +
        "fits, without loading it.",
    )
    .addArgument(hereArgument())
    .addOption(
      new Option("--shape <size>", "instead of a model: a released size").choices(shapeNames),
    )
    .addOption(
      new Option("--bits <n>", "with --shape: bits a weight, in groups of 64")
        .choices(["2", "3", "4", "5", "6", "8"])
        .default(4)
        .argParser((text) => Number(text)),
    )
    .addOption(jsonOption("print one JSON object, with sizes in bytes"));
  return addModelOptions(addServingOptions(command))
    .addHelpText("after", help)
    .action(async (model: string, flags: PlanFlags, command: Command) => {
      checkShape(command, flags);
      const subject =
        flags.shape === undefined ? { model } : { shape: flags.shape, bits: flags.bits };
      const options = {
        ...openOptions(flags),
        ...servingOptions(flags),
        onWarning: (message: string) => io.stderr.write(`warning: ${message}\n`),
      };
      const report = await planReport(subject, options, flags.backend);
      io.stdout.write(`${flags.json ? JSON.stringify(report) : planText(report)}\n`);
    });
}

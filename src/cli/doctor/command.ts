import { Command } from "commander";
import type { CliIo } from "../io.ts";
import { jsonOption } from "../options.ts";
import { inspectMachine } from "./machine.ts";
import { reportText } from "./text.ts";

interface DoctorFlags {
  readonly adapter?: string;
  readonly json?: true;
}

export function doctorCommand(io: CliIo): Command {
  return new Command("doctor")
    .summary("say what this machine has, and what will be slow")
    .description(
      "Says what processors and GPUs there are, what they lack and what comes of that, and measures " +
        "how fast they read.",
    )
    .option(
      "--adapter <which>",
      "the adapter to measure: its number in this list, or part of its name (default: the first)",
    )
    .addOption(jsonOption("print one JSON object"))
    .action(async (flags: DoctorFlags) => {
      const report = await inspectMachine(flags.adapter ?? null);
      io.stdout.write(`${flags.json ? JSON.stringify(report) : reportText(report)}\n`);
    });
}

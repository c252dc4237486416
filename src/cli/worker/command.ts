import { Option } from "commander";
import { batchLockMsDefault } from "../../limits.ts";
import { queueOption } from "../batch/options.ts";
import type { CliIo } from "../io.ts";
import { addModelOptions, addReplyOptions, quietOption } from "../options.ts";
import { pulledArgument, yesOption } from "../pull/options.ts";
import { VariableCommand } from "../serve/environment.ts";
import { addStreamOptions } from "../stream-options.ts";
import { wholeNumber } from "../values.ts";
import type { WorkerFlags } from "./work.ts";

const daySeconds = 86_400;

const help = `
Any number of workers, on any number of machines, serve the batches of one queue, the oldest first.
Sampling flags, --max-tokens and --thinking hold for requests that don't say themselves; workers that
differ in them count as having other weights.

Each flag has a variable, as those of serve have; --queue has DELTAFOLD_QUEUE_URL.

SIGTERM lets requests end for --drain-seconds, and gives the others back; Ctrl-C gives them back now.`;

export function workerCommand(io: CliIo): VariableCommand {
  const command = new VariableCommand("worker")
    .summary("serve the requests of batches")
    .description("Serves the requests of `deltafold batch`, until Ctrl-C.")
    .addArgument(pulledArgument())
    .addOption(queueOption())
    .addOption(
      new Option("--lock-seconds <n>", "unheard of for so long, its requests go to others")
        .argParser(wholeNumber(1, daySeconds))
        .default(batchLockMsDefault / 1000),
    )
    .addOption(
      new Option("--drain-seconds <n>", "for requests to end in once SIGTERM has come")
        .argParser(wholeNumber(0, daySeconds))
        .default(30),
    )
    .addOption(
      new Option("--metrics-port <n>", "/metrics and /health at this port; 0 picks one").argParser(
        wholeNumber(0, 65_535),
      ),
    )
    .option("--metrics-host <host>", "the address to tell these at", "127.0.0.1");
  addModelOptions(addStreamOptions(addReplyOptions(command)))
    .addOption(quietOption())
    .addOption(yesOption("pull a model that isn't here"))
    .addHelpText("after", help)
    // What speaks to the queue is loaded here alone.
    .action(async (model: string, flags: WorkerFlags) =>
      (await import("./work.ts")).work(io, model, flags),
    );
  return command;
}

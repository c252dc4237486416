import { Command, Option } from "commander";
import { batchAttemptsDefault } from "../../limits.ts";
import type { CliIo } from "../io.ts";
import { jsonOption, quietOption } from "../options.ts";
import { wholeNumber } from "../values.ts";
import { queueOption } from "./options.ts";

const help = `
FILE.jsonl has a request a line, as OpenAI's batches do:
  {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [...]}}

The batch is named by the file's bytes: the same file is the same batch, whichever machine names it.

Examples:
  export DELTAFOLD_QUEUE_URL=redis://127.0.0.1:6379
  deltafold batch submit requests.jsonl
  deltafold worker &
  deltafold batch results requests.jsonl`;

/** `batch submit|status|results|cancel`. What they do is loaded by those who do it. */
export function batchCommand(io: CliIo): Command {
  return new Command("batch")
    .summary("have a file of requests served by workers")
    .description("Has a file of requests served by any number of `deltafold worker`.")
    .helpCommand(false)
    .addHelpText("after", help)
    .addCommand(submitCommand(io))
    .addCommand(statusCommand(io))
    .addCommand(resultsCommand(io))
    .addCommand(cancelCommand(io));
}

/** A part of `batch`, with what all parts have. */
const part = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .argument("<file>", "the file of requests")
    .addOption(queueOption());

function submitCommand(io: CliIo): Command {
  return part("submit", "send a file's requests to the queue, or what is missing of them")
    .addOption(
      new Option(
        "--attempts <n>",
        "how often a request is tried that fails by no fault of its own, or whose worker dies",
      )
        .argParser(wholeNumber(1, 1000))
        .default(batchAttemptsDefault),
    )
    .option("--build <version>", "only workers of this version of deltafold")
    .option("--device <text>", "only workers whose device's class has this text")
    .option("--weights <digits>", "only workers whose weights begin with these digits")
    .addOption(quietOption())
    .action(async (path, flags) => (await import("./actions.ts")).submit(io, path, flags));
}

function statusCommand(io: CliIo): Command {
  return part("status", "say how many requests of a file are done")
    .addOption(jsonOption("print one JSON object"))
    .action(async (path, flags) => (await import("./actions.ts")).status(io, path, flags));
}

function resultsCommand(io: CliIo): Command {
  return part("results", "write results to a file as they come, each once; goes on where it was")
    .addOption(
      new Option("-o, --output <file>", "where to (default: FILE.results.jsonl beside the file)"),
    )
    .option("--no-wait", "write what is there, and don't wait for the rest")
    .option("--remove", "once all results are in the file, remove the batch from the queue")
    .addOption(quietOption())
    .action(async (path, flags) => (await import("./actions.ts")).results(io, path, flags));
}

function cancelCommand(io: CliIo): Command {
  return part("cancel", "drop what no worker has begun; what is done can still be had").action(
    async (path, flags) => (await import("./actions.ts")).cancel(io, path, flags),
  );
}

import { Command, Option } from "commander";
import { DeltafoldError } from "../../errors.ts";
import { createApp } from "../../serve/app.ts";
import { errorReply } from "../../serve/error-reply.ts";
import type { CliIo } from "../io.ts";
import { loadEngine } from "../load.ts";
import {
  addModelOptions,
  addReplyOptions,
  type ModelFlags,
  modelArgument,
  openOptions,
  quietOption,
  type ReplyFlags,
} from "../options.ts";
import { addServingOptions, type ServingFlags, servingOptions } from "../stream-options.ts";
import { wholeNumber } from "../values.ts";
import { banner, exposedWarning } from "./banner.ts";
import { firstSignal, Listener } from "./listener.ts";

interface ServeFlags extends ModelFlags, ReplyFlags, ServingFlags {
  readonly host: string;
  readonly port: number;
  readonly quiet?: true;
}

const help = `
Sampling flags, --max-tokens and --thinking hold for requests that don't say themselves. Ctrl-C
ends the replies in progress and stops the server; a second one ends it at once.`;

export function serveCommand(io: CliIo): Command {
  const command = new Command("serve")
    .summary("serve a model over an OpenAI-compatible API")
    .description("Serves a model over an OpenAI-compatible API, until Ctrl-C.")
    .addArgument(modelArgument())
    .option("--host <host>", "the address to listen at", "127.0.0.1")
    .addOption(
      new Option("--port <n>", "the port; 0 picks one that is free")
        .argParser(wholeNumber(0, 65_535))
        .default(8080),
    );
  return addModelOptions(addServingOptions(addReplyOptions(command)))
    .addOption(quietOption())
    .addHelpText("after", help)
    .action((model: string, flags: ServeFlags) => serve(io, model, flags));
}

async function serve(io: CliIo, model: string, flags: ServeFlags): Promise<void> {
  const options = {
    ...openOptions(flags),
    ...servingOptions(flags),
    ...(flags.maxTokens !== undefined && { maxTokens: flags.maxTokens }),
  };
  const quiet = flags.quiet ?? false;
  // Listens first: a busy port is found before minutes are spent on loading.
  await using listener = await Listener.open(flags.host, flags.port, () =>
    unavailable("loading", "The model is being loaded. Try again soon."),
  );
  if (!listener.isLoopback) io.stderr.write(exposedWarning(flags.host));
  const availableBytes = process.availableMemory();
  await using engine = await loadEngine(io, model, options, quiet);
  const stopped = firstSignal(io.signals);
  const report = (error: unknown) => {
    io.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  };
  const app = createApp({ engine, report });
  listener.fetch = (request, connection) => app.fetch(request, connection);
  const ready = () => banner(listener.url, engine.info, flags, availableBytes);
  io.stdout.write(quiet ? `${listener.url}\n` : ready());
  await stopped;
  if (!quiet) io.stderr.write("stopping\n");
  listener.stop();
  // Connections that stay open could bring a request still.
  listener.fetch = () => unavailable("stopping", "The server is stopping.");
}

const unavailable = (code: string, message: string): Response =>
  errorReply(new DeltafoldError(code, message, { status: 503 }));

import type { Command } from "commander";
import { setAlarm } from "../../clock.ts";
import { InputError } from "../../errors.ts";
import { freeMemoryBytes } from "../../memory-node.ts";
import { type AppOptions, createApp } from "../../serve/app.ts";
import type { ApiKeys } from "../../serve/keys.ts";
import { readPageFiles } from "../../serve/page-files-node.ts";
import { standIn } from "../../serve/stand-in.ts";
import type { CliIo } from "../io.ts";
import { loadEngine } from "../load.ts";
import {
  addModelOptions,
  addReplyOptions,
  type ModelFlags,
  openOptions,
  quietOption,
  type ReplyFlags,
} from "../options.ts";
import { pulledArgument, type YesFlags, yesOption } from "../pull/options.ts";
import { addServingOptions, type ServingFlags, servingOptions } from "../stream-options.ts";
import { banner, exposedWarning } from "./banner.ts";
import { drain, refuse } from "./drain.ts";
import { keyVariable, VariableCommand } from "./environment.ts";
import { KeyRing } from "./key-ring.ts";
import { firstSignal, Listener } from "./listener.ts";
import {
  type AccessFlags,
  addAccessOptions,
  addListenOptions,
  addReportOptions,
  type ListenFlags,
  type ReportFlags,
} from "./options.ts";
import { configText } from "./print-config.ts";
import { Reporter, residentBytes } from "./reporter.ts";

interface ServeFlags
  extends ModelFlags,
    ReplyFlags,
    ServingFlags,
    ListenFlags,
    AccessFlags,
    ReportFlags,
    YesFlags {
  readonly quiet?: true;
  readonly printConfig?: true;
}

const help = `
Sampling flags, --max-tokens and --thinking hold for requests that don't say themselves.

Each flag has a variable, which it overrides: DELTAFOLD_PORT for --port, DELTAFOLD_API_KEY for
--api-key. Where a flag takes no value, 1 stands for it: DELTAFOLD_NO_LIVE=1.

SIGTERM: /health/ready turns 503; after --drain-delay-seconds requests are refused, and replies have
--drain-seconds to end. Ctrl-C ends them now. A second signal ends the server at once.`;

export function serveCommand(io: CliIo): Command {
  const command = new VariableCommand("serve")
    .summary("serve a model over an OpenAI-compatible API")
    .description("Serves a model over an OpenAI-compatible API, until Ctrl-C.")
    .addArgument(pulledArgument());
  addReportOptions(addAccessOptions(addListenOptions(command)));
  return addModelOptions(addServingOptions(addReplyOptions(command)))
    .addOption(quietOption())
    .addOption(yesOption("pull a model that isn't here"))
    .option("--print-config", "print every setting and where it came from, and end")
    .addHelpText("after", help)
    .action(async (model: string, flags: ServeFlags) => {
      if (flags.printConfig) io.stdout.write(configText(command));
      else {
        const apiKeyInVariable = command.getOptionValueSource("apiKey") === "env";
        await serve(io, model, { ...flags, apiKeyInVariable });
      }
    });
}

async function serve(io: CliIo, model: string, flags: ServeFlags): Promise<void> {
  const { host, port, maxConnections: connectionsMax, quiet = false } = flags;
  const options = {
    ...openOptions(flags),
    ...servingOptions(flags),
    ...(flags.maxTokens !== undefined && { maxTokens: flags.maxTokens }),
  };
  using reporter = new Reporter(io.stderr, flags, quiet);
  const { note, warn } = reporter;
  using ring = new KeyRing(flags, { signals: io.signals, setAlarm, note, warn });
  // Listens first: a busy port is found before minutes are spent on loading.
  const loading = standIn("loading", "The model is being loaded. Try again soon.");
  await using listener = await Listener.open(host, port, loading, { connectionsMax });
  checkExposure(listener, flags, ring.keys, reporter);
  const availableBytes = availableTo(flags);
  // What shows how far it is, no reader of JSON lines could read.
  const loadsQuietly = quiet || flags.log === "json";
  await using engine = await loadEngine(
    io,
    model,
    { ...options, onWarning: warn },
    { quiet: loadsQuietly, yes: flags.yes ?? false },
  );
  const stopped = firstSignal(io.signals);
  const page = await readPageFiles();
  const access = appOptions(listener, flags, ring.keys, reporter);
  const app = createApp({ engine, ...access, ...(page && { page }) });
  listener.fetch = (request, connection) => app.fetch(request, connection);
  const asked = { ...flags, shellKey: ring.keys && shellKey(flags) };
  const ready = () => banner(listener.url, engine.info, asked, availableBytes);
  io.stdout.write(quiet ? `${listener.url}\n` : ready());
  reporter.watch(engine);
  const signal = await stopped;
  if (signal === "SIGTERM") await drain(engine, listener, flags, reporter);
  else {
    refuse(listener);
    note("stopping");
  }
  listener.stop();
}

/** Bytes that there are for the model before it is loaded: how many a GPU has, nobody knows unless it is said. */
const availableTo = ({ memoryGib, backend }: ServeFlags): number | null =>
  memoryGib ?? (backend === "webgpu" ? null : freeMemoryBytes());

/** A key of flags or of a file is in no variable of the reader's shell. */
const shellKey = ({ apiKeyInVariable }: AccessFlags): string =>
  apiKeyInVariable ? `$${keyVariable}` : "YOUR_KEY";

/** @throws InputError where other machines could use the server without being asked for a key */
function checkExposure(
  listener: Listener,
  { host, allowNoKey = false }: ListenFlags & AccessFlags,
  keys: ApiKeys | null,
  reporter: Reporter,
): void {
  if (listener.isLoopback || keys) return;
  if (!allowNoKey) {
    throw new InputError(
      `${host} is open to other machines: give --api-key-file FILE or ${keyVariable}, or ` +
        "--allow-no-key to serve whoever comes.",
    );
  }
  reporter.warn(exposedWarning(host));
}

function appOptions(
  listener: Listener,
  flags: ListenFlags & AccessFlags,
  keys: ApiKeys | null,
  { report, onEnd }: Reporter,
): Omit<AppOptions, "engine"> {
  const { host, allowHost = [], corsOrigin = [], metricsOpen = false, pingSeconds } = flags;
  const own = listener.isLoopback ? [host.includes(":") ? `[${host}]` : host] : [];
  const hosts = [...own, ...allowHost];
  return {
    ...{ report, onEnd, residentBytes, metricsOpen },
    ...(keys && { keys }),
    ...(hosts.length > 0 && { hosts }),
    corsOrigins: corsOrigin,
    pingMs: pingSeconds * 1000,
  };
}

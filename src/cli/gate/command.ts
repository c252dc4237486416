import { existsSync } from "node:fs";
import { Command } from "commander";
import { systemClock } from "../../clock.ts";
import { InputError } from "../../errors.ts";
import {
  drafterPlace,
  embeddedModel,
  modelFolder,
  type OpenOptions,
  openBackend,
} from "../../node.ts";
import { type OpenDrafter, openDrafterFor } from "../../open-drafter.ts";
import type { Weights } from "../../weights/weights.ts";
import type { CliIo } from "../io.ts";
import {
  addBackendOptions,
  addDrafterOptions,
  type BackendFlags,
  type DrafterFlags,
  jsonOption,
  openOptions,
} from "../options.ts";
import { drafterHere, findHere } from "../pull/find.ts";
import { type GateCase, type GateReport, GateRun } from "./gate-run.ts";
import { type Gate, gates } from "./gates.ts";
import type { GateOptions } from "./options.ts";
import { type Shard, shardValue } from "./shard.ts";

interface GateFlags extends BackendFlags, DrafterFlags {
  readonly model: string;
  readonly full?: boolean;
  readonly shard?: Shard;
  readonly references?: string;
  readonly json?: boolean;
}

/** `gate [name]`: proves the promise on the backend at hand; without a name, lists the gates. */
export function gateCommand(io: CliIo): Command {
  const command = new Command("gate")
    .description("prove exactness on this machine; without a name, list the gates")
    .argument("[name]", "the gate to run")
    .option(
      "--model <model>",
      "an embedded model, a folder, or a model in the cache: ORG/NAME (all but golden and synthetic)",
      embeddedModel,
    )
    .option("--full", "run every cell, not the sample of at most 3 minutes")
    .option(
      "--shard <i/n>",
      "run one of n parts of the cells; other processes run the rest",
      shardValue,
    )
    .option("--references <folder>", "more reference outputs: a folder with golden/ and models/")
    .addOption(jsonOption("print one JSON report"));
  addBackendOptions(command).optionsGroup("Options of drafted, streams, resume and http:");
  return addDrafterOptions(command).action(async (name: string | undefined, flags: GateFlags) => {
    if (name === undefined) {
      for (const gate of gates) io.stdout.write(`${gate.name.padEnd(9)} ${gate.about}\n`);
      return;
    }
    const asked = openOptions(flags);
    const references = flags.references ?? null;
    if (references !== null && !existsSync(references)) {
      throw new InputError(`--references ${references}: there is no such folder.`);
    }
    if (name === "golden" && flags.model !== embeddedModel) {
      throw new InputError("The golden gate has reference outputs of the embedded model alone.");
    }
    const { model, choice } = await placesOf(flags.model, asked);
    const options: GateOptions = {
      open: (sizes) => openBackend(sizes, choice),
      model,
      drafter: (target) => openGateDrafter(model, target, choice, io),
      full: flags.full ?? false,
      shard: flags.shard,
      references,
      choice,
    };
    const print = flags.json ? null : (line: string) => io.stdout.write(`${line}\n`);
    const report = await runGate(name, options, print);
    print?.(summary(report));
    if (flags.json) io.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
    if (!report.ok) process.exitCode = 1;
  });
}

/** A model of the hub's cache goes by its folder, and its drafter too: other processes are told of both. */
async function placesOf(
  model: string,
  choice: OpenOptions,
): Promise<{ readonly model: string; readonly choice: OpenOptions }> {
  const found = await findHere(model);
  const { drafter, drafterFolders } = await drafterHere(found, choice);
  const named = drafter ?? (drafterFolders && (drafterFolders[0] ?? "none"));
  return {
    model: found.hub ? found.folder : model,
    choice: named === undefined ? choice : { ...choice, drafter: named },
  };
}

/** The drafter that the flags name, or the one whose folder lies beside the model's. */
async function openGateDrafter(
  model: string,
  target: Weights,
  choice: OpenOptions,
  io: CliIo,
): Promise<OpenDrafter | null> {
  const place = drafterPlace(modelFolder(model), choice.drafter ?? "auto");
  const warn = (message: string) => io.stderr.write(`warning: ${message}\n`);
  return place && (await openDrafterFor(place, target, choice, warn));
}

function summary(report: GateReport): string {
  const { gate, ok, passed, failed, not_run: notRun, seconds, backend } = report;
  const rest = notRun.map((line) => `not run: ${line}\n`).join("");
  const verdict = `${gate} ${ok ? "holds" : "FAILS"}: ${passed} passed, ${failed} failed`;
  return `${rest}${verdict}, ${notRun.length} not run, ${seconds} s on ${backend}`;
}

/**
 * Runs one gate by name, printing a line a cell where `print` is given.
 * @throws InputError for a name that no gate has
 */
export async function runGate(
  name: string,
  options: GateOptions,
  print: ((line: string) => void) | null,
): Promise<GateReport> {
  const gate = findGate(name);
  const onCase = ({ name: cell, ok, detail }: GateCase) =>
    print?.(`${ok ? "ok  " : "FAIL"} ${cell}: ${detail}`);
  const run = new GateRun(systemClock, options.full, onCase, options.shard);
  const backend = await gate.run(run, options);
  return run.report(gate.name, backend);
}

function findGate(name: string): Gate {
  const gate = gates.find((known) => known.name === name);
  if (gate) return gate;
  throw new InputError(`There is no gate ${name}: ${gates.map((known) => known.name).join(", ")}.`);
}

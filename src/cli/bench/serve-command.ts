import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { InputError } from "../../errors.ts";
import type { CliIo } from "../io.ts";
import { type ModelFlags, openOptions } from "../options.ts";
import { findHere } from "../pull/find.ts";
import { wholeNumber } from "../values.ts";
import { benchServe } from "./serve.ts";
import type { CaseReport, ServeBenchReport } from "./serve-report.ts";
import type { Spread } from "./spread.ts";

/** Of `bench serve`, beside those of all benches. */
export interface ServeBenchFlags extends ModelFlags {
  readonly repeats: number;
  readonly streams: number;
  readonly shape?: string;
  readonly tokens: number;
  readonly prefill: readonly number[];
  readonly alone?: true;
  readonly serial?: true;
  readonly against?: string;
  readonly json?: boolean;
}

/** Adds the flags that no other bench has. */
export function addServeOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--tokens <n>", "with serve: of a reply, at most")
        .argParser(wholeNumber(2, Number.MAX_SAFE_INTEGER))
        .default(128),
    )
    .addOption(
      new Option("--prefill <list>", "with serve: lengths of prompts, or none")
        .argParser(lengthsValue)
        .default([2000, 8000, 32_000], "2000,8000,32000"),
    )
    .option("--alone", "with serve: compare streams with the same replies alone")
    .option("--serial", "with serve: compare streams with the same replies alone and plain")
    .option("--against <folder>", "with serve: another build, measured in turns A B B A");
}

/** `bench serve`. */
export async function serveBench(io: CliIo, model: string, flags: ServeBenchFlags): Promise<void> {
  if (!flags.drafts) {
    throw new InputError(
      "bench serve measures replies with drafts beside plain ones: no --no-drafts.",
    );
  }
  if (flags.shape !== undefined) throw new InputError("bench serve measures a model: no --shape.");
  const { repeats, tokens, streams, prefill, json = false } = flags;
  // Another build is to load the same files.
  const { hub, name, folder } = await findHere(model);
  const report = await benchServe({
    ...{ model: hub ? name : folder, repeats, tokens, streams, prefill },
    open: openOptions(flags),
    alone: flags.alone ?? false,
    serial: flags.serial ?? false,
    against: flags.against === undefined ? null : builtProgram(flags.against),
    onRepeat: (repeat) =>
      io.stderr.write(repeat === 0 ? "warming up\n" : `repeat ${repeat} of ${repeats}\n`),
  });
  io.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : text(report));
}

/** @throws InputError */
function builtProgram(folder: string): string {
  const program = join(resolve(folder), "dist", "cli", "main.js");
  if (existsSync(program)) return program;
  throw new InputError(`--against ${folder}: no build of deltafold: there is no ${program}.`);
}

/** Lengths over 0, apart by commas. */
function lengthsValue(list: string): readonly number[] {
  if (list === "none") return [];
  const lengths = list.split(",").map((each) => (/^\d+$/.test(each) ? Number(each) : 0));
  if (lengths.every((length) => length > 0)) return lengths;
  throw new InvalidArgumentError("It must be whole numbers over 0, apart by commas, or none.");
}

function text({ replies, prefill, streams, not_run: notRun, ...report }: ServeBenchReport): string {
  const way = ({ drafted }: { drafted: boolean }) => (drafted ? "drafted" : "plain  ");
  const round = (tokens: number | null) => `${tokens ?? "–"} a round`;
  return [
    `${report.model} on ${report.backend}`,
    `${report.cpu}, ${report.cores} cores, node ${report.node}, ${report.repeats} repeats`,
    ...replies.map((each) => {
      const what = `${each.name.padEnd(10)} ${way(each)}`;
      return `${what} ${speeds(each)}, ${round(each.tokens_per_round)}${verdict([each.equal])}`;
    }),
    ...prefill.map((each) => `prefill ${`${each.tokens}`.padEnd(10)} ${speeds(each)}`),
    ...streams.map((each) => {
      const what = `${`${each.streams}`.padStart(2)} streams ${way(each)}`;
      const figures = `${each.of_one_plain} × one plain, ${round(each.tokens_per_round)}`;
      const checks = [each.equal_alone, each.equal_serial].filter((equal) => equal !== undefined);
      return `${what} ${speeds(each)}, ${figures}${verdict(checks)}`;
    }),
    ...notRun.map((line) => `not run: ${line}`),
    "",
  ].join("\n");
}

function speeds({ tokens_per_second: speed, against }: CaseReport): string {
  const own = show(speed, "tok/s");
  if (!against) return own;
  const beside = `${show(against.percent, "%")} of the other's, whose own turns are ${show(against.self_percent, "%")}`;
  return `${own}: ${beside}${verdict([against.equal])}`;
}

const show = ({ median, min, max }: Spread, unit: string): string =>
  `${median} ${unit} (${min} … ${max})`;

const verdict = (checks: readonly boolean[]): string =>
  checks.length === 0 ? "" : checks.every((equal) => equal) ? "; equal" : "; DIFFERENT";

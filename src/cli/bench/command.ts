import { Command, Option } from "commander";
import { InputError } from "../../errors.ts";
import { parallelDefault, roundRowsMax } from "../../limits.ts";
import { shapeNames } from "../../model/released-shapes.ts";
import type { GpuChoice, OpenOptions } from "../../node.ts";
import { gpuActivations } from "../../open-model.ts";
import type { AffineBits } from "../../weights/weights.ts";
import type { CliIo } from "../io.ts";
import { addModelOptions, checkShape, hereArgument, jsonOption, openOptions } from "../options.ts";
import { drafterHere, findHere } from "../pull/find.ts";
import { wholeNumber } from "../values.ts";
import { benchDecode, type DecodeReport } from "./decode.ts";
import { benchDrafted, type DraftedCaseReport } from "./drafted.ts";
import { addServeOptions, type ServeBenchFlags, serveBench } from "./serve-command.ts";
import type { Spread } from "./spread.ts";
import { benchStreamSteps } from "./stream-steps.ts";
import { benchStreams, type StreamsCaseReport } from "./streams.ts";
import { benchSynthetic } from "./synthetic.ts";
import { benchSyntheticCpu } from "./synthetic-cpu.ts";

interface BenchFlags extends ServeBenchFlags {
  readonly busy?: boolean;
  readonly bits: AffineBits;
  readonly compareScan?: boolean;
  readonly drafted?: boolean;
}

/** `bench [name] [model]`: measures this machine; without a name, lists the benches. */
export function benchCommand(io: CliIo): Command {
  const command = new Command("bench")
    .description("measure speed on this machine; without a name, list the benches")
    .argument("[name]", "the bench to run")
    .addArgument(hereArgument())
    .addOption(
      new Option("--repeats <n>", "measurements, of which the median counts")
        .argParser(wholeNumber(1, 1000))
        .default(5),
    )
    .addOption(
      new Option(
        "--shape <size>",
        "random weights of this size, made on the GPU; with --backend wasm, in memory",
      ).choices(shapeNames),
    )
    .addOption(
      new Option("--bits <n>", "with --shape: bits a weight, in groups of 64")
        .choices(["2", "3", "4", "5", "6", "8"])
        .default(4)
        .argParser((text) => Number(text)),
    )
    .option(
      "--compare-scan",
      "with --shape: also measure a copy of each layer's state, in turns A B B A; needs twice the memory",
    )
    .option("--drafted", "with --shape: rounds with a DFlash2 drafter beside plain steps, in turns")
    .addOption(
      new Option("--streams <n>", "with streams and serve: how many, at most")
        .argParser(wholeNumber(2, roundRowsMax))
        .default(parallelDefault),
    )
    .option("--busy", "also measure beside one endless loop a core, in turns")
    .addOption(jsonOption("print one JSON report"));
  addModelOptions(addServeOptions(command));
  return command.action(async (name: string | undefined, model: string, flags: BenchFlags) => {
    if (name === undefined) {
      io.stdout.write("decode   plain decoding of one stream, start and memory\n");
      io.stdout.write("drafted  replies with drafts beside the same without, in turns\n");
      io.stdout.write("streams  equal streams that share their rounds, beside one alone\n");
      io.stdout.write("serve    replies, prompts and streams over HTTP, as clients see them\n");
      return;
    }
    checkShape(command, flags, ["compareScan", "drafted"]);
    if (name === "serve") {
      await serveBench(io, model, flags);
      return;
    }
    if (name === "streams") {
      await streamsBench(io, model, flags);
      return;
    }
    if (name === "drafted") {
      const odd = !flags.drafts ? "--no-drafts" : flags.busy ? "--busy" : flags.shape && "--shape";
      if (odd) throw new InputError(`bench drafted measures replies with drafts: no ${odd}.`);
      const print = (line: string) => (flags.json ? io.stderr : io.stdout).write(line);
      const { folder, options } = await modelHere(model, flags);
      const drafted = await benchDrafted(folder, options, flags.repeats, (result) =>
        print(draftedLine(result)),
      );
      if (flags.json) io.stdout.write(`${JSON.stringify(drafted, null, 2)}\n`);
      return;
    }
    if (name !== "decode")
      throw new InputError(`There is no bench ${name}: decode, drafted, serve, streams.`);
    if (flags.shape !== undefined && flags.backend === "wasm") {
      const options = { shape: flags.shape, bits: flags.bits, choice: openOptions(flags) };
      const report = await benchSyntheticCpu(options, flags.repeats);
      io.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
      return;
    }
    if (flags.shape !== undefined) {
      const { shape, bits, repeats } = flags;
      const choice = gpuChoice(flags);
      const compareScan = flags.compareScan ?? false;
      const synthetic = await benchSynthetic({
        ...{ shape, bits, repeats, choice, compareScan, drafted: flags.drafted ?? false },
        onPass: ({ rows, context, ms, tokens_per_second: speed }) =>
          io.stderr.write(`${rows} rows at ${context}: ${ms.median} ms, ${speed} tok/s\n`),
      });
      io.stdout.write(`${JSON.stringify(synthetic, null, 2)}\n`);
      return;
    }
    const { folder, options } = await modelHere(model, flags);
    const report = await benchDecode(folder, options, flags.repeats, flags.busy ?? false);
    io.stdout.write(flags.json ? `${JSON.stringify(report, null, 2)}\n` : text(report));
  });
}

/** A model's folder, and how it is opened. */
async function modelHere(
  model: string,
  flags: BenchFlags,
): Promise<{ readonly folder: string; readonly options: OpenOptions }> {
  const found = await findHere(model);
  const options = openOptions(flags);
  const drafter = await drafterHere(found, options);
  return { folder: found.folder, options: { ...options, ...drafter, name: found.name } };
}

async function streamsBench(io: CliIo, model: string, flags: BenchFlags): Promise<void> {
  const { shape, bits, streams, repeats } = flags;
  const measureModel = async () => {
    const { folder, options } = await modelHere(model, flags);
    return await benchStreams(folder, options, streams, repeats);
  };
  const report =
    shape === undefined
      ? await measureModel()
      : await benchStreamSteps({ shape, bits, streams, repeats, choice: gpuChoice(flags) });
  const lines = "cases" in report && !flags.json ? report.cases.map(streamsLine).join("") : null;
  io.stdout.write(lines ?? `${JSON.stringify(report, null, 2)}\n`);
}

/** Of benches over random weights, which are made on a GPU. */
function gpuChoice(flags: BenchFlags): GpuChoice {
  const { activations, kv } = openOptions({ ...flags, backend: "webgpu" });
  const adapter = flags.adapter ?? null;
  return { adapter, activations: gpuActivations(activations), ...(kv && { kv }) };
}

function streamsLine(result: StreamsCaseReport): string {
  const { streams, drafted, equal, of_one_plain: ratio } = result;
  const { median, min, max } = result.tokens_per_second;
  const what = `${String(streams).padStart(3)} ${drafted ? "drafted" : "plain  "}`;
  const speed = `${median} tok/s (${min} … ${max})`;
  return `${what} ${ratio} × one plain: ${speed}; ${equal ? "equal" : "DIFFERENT"}\n`;
}

function draftedLine(result: DraftedCaseReport): string {
  const { name, ratio, tokens, rounds, tokens_per_round: each, equal } = result;
  const [plain, drafted] = [result.plain_tokens_per_second, result.drafted_tokens_per_second];
  const speeds = `${drafted.median} against ${plain.median} tok/s`;
  const what = `${tokens} tokens in ${rounds} rounds, ${each} a round`;
  return `${name.padEnd(10)} ${ratio} ×: ${speeds}; ${what}; ${equal ? "equal" : "DIFFERENT"}\n`;
}

function text(report: DecodeReport): string {
  const show = ({ median, min, max }: Spread, unit: string) =>
    `${median} ${unit} (${min} … ${max})`;
  const { busy } = report;
  return [
    `${report.model} on ${report.backend}`,
    `${report.cpu}, ${report.cores} cores, node ${report.node}, ${report.repeats} repeats`,
    `decode                 ${show(report.decode_tokens_per_second, "tok/s")}`,
    `first token            ${show(report.first_token_ms, "ms")}`,
    `start to first token   ${show(report.start_to_first_token_ms, "ms")}`,
    `load                   ${report.load_ms} ms`,
    `peak memory            ${report.peak_memory_mib} MiB`,
    ...(busy
      ? [
          `decode beside loops    ${show(busy.decode_tokens_per_second, "tok/s")}`,
          `busy / idle            ${busy.ratio} (fair share ${busy.fair_share})`,
        ]
      : []),
    "",
  ].join("\n");
}

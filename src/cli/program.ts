import { Command } from "commander";
import { packageVersion } from "../package-version-node.ts";
import { batchCommand } from "./batch/command.ts";
import { benchCommand } from "./bench/command.ts";
import { convertCommand } from "./convert/command.ts";
import { doctorCommand } from "./doctor/command.ts";
import { exitCodeOf } from "./exit.ts";
import { gateCommand } from "./gate/command.ts";
import type { CliIo } from "./io.ts";
import { listCommand } from "./list/command.ts";
import { planCommand } from "./plan/command.ts";
import { pullCommand } from "./pull/command.ts";
import { rmCommand } from "./rm/command.ts";
import { runCommand } from "./run/command.ts";
import { serveCommand } from "./serve/command.ts";
import { showCommand } from "./show/command.ts";
import { workerCommand } from "./worker/command.ts";

const examples = `
Examples:
  deltafold run                            chat with the model that comes along
  deltafold run -p "What is 37 + 5?"       one reply
  deltafold serve                          an OpenAI-compatible server at 127.0.0.1:8080
  deltafold run ./Qwen3.5-2B-MLX-4bit      any qwen3_5 checkpoint folder
  deltafold pull ORG/NAME                  download one from the Hugging Face hub
  deltafold convert ./Qwen3.5-2B ./small   quantise one to 4 bits

deltafold COMMAND --help tells all of a command's options.`;

/** Runs one command line and returns its exit code. Errors are reported, not thrown. */
export async function runProgram(args: readonly string[], io: CliIo): Promise<number> {
  try {
    await createProgram(io).parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    return exitCodeOf(error, io.stderr);
  }
}

function createProgram(io: CliIo): Command {
  const program = new Command("deltafold")
    .description(
      "Runs hybrid Gated-DeltaNet language models (Qwen3.5 and its kin), exactly, on this machine.",
    )
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand(false)
    .addHelpText("after", examples)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, "deltafold: ")),
    });
  const commands = [
    runCommand(io),
    serveCommand(io),
    batchCommand(io),
    workerCommand(io),
    pullCommand(io),
    listCommand(io),
    showCommand(io),
    rmCommand(io),
    planCommand(io),
    convertCommand(io),
    gateCommand(io),
    doctorCommand(io),
    benchCommand(io),
  ];
  for (const command of commands) {
    program.addCommand(command.copyInheritedSettings(program));
    for (const part of command.commands) part.copyInheritedSettings(program);
  }
  return program;
}

/** @module The command line: runs the command that the arguments name. */
import { DeltafoldError } from "../errors.ts";
import { errorLine } from "./exit.ts";
import { runProgram } from "./program.ts";

/** What a shell reports of a program that died of SIGPIPE. */
const brokenPipeCode = 141;

for (const output of [process.stdout, process.stderr]) {
  output.on("error", (error: NodeJS.ErrnoException) => {
    // Whoever read our output has gone, as `head` does.
    if (error.code === "EPIPE") process.exit(brokenPipeCode);
    const failed = new DeltafoldError(
      "write_failed",
      `The output can't be written: ${error.message}`,
    );
    if (output !== process.stderr) process.stderr.write(errorLine(failed));
    process.exit(1);
  });
}

const { stdin, stdout, stderr } = process;
const code = await runProgram(process.argv.slice(2), { stdin, stdout, stderr, signals: process });
// The process ends by itself once its output is written; a command may have set a code of its own.
if (code !== 0) process.exitCode = code;

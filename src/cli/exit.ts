import { CommanderError } from "commander";
import { DeltafoldError, InvariantError } from "../errors.ts";
import type { OutputStream } from "./io.ts";

/** What a shell reports of a program that died of SIGINT. */
const interruptedCode = 130;

/** The user ended a command before it was done. */
export class InterruptedError extends DeltafoldError {
  constructor(message: string) {
    super("interrupted", message);
  }
}

/** Whether an error is one for users to read, rather than a bug's. */
export function isUserError(error: unknown): error is DeltafoldError {
  return error instanceof DeltafoldError && !(error instanceof InvariantError);
}

/** An error as the one line that a user sees. */
export function errorLine(error: DeltafoldError): string {
  return `deltafold: ${error.message.replace(/\s*\n\s*/g, " ")}\n`;
}

/** Reports what ended a command: one line, or the stack where it is a bug. */
export function exitCodeOf(error: unknown, stderr: OutputStream): number {
  // Commander has written its message, or the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode;
  if (isUserError(error)) {
    stderr.write(errorLine(error));
    return error instanceof InterruptedError ? interruptedCode : 1;
  }
  stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  return 1;
}

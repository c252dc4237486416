import { EventEmitter, once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import type { CliIo, OutputStream } from "./io.ts";
import { runProgram } from "./program.ts";

/** An output that keeps what is written to it. */
export class Captured extends Writable implements OutputStream {
  readonly isTTY: boolean;
  readonly columns = 80;
  text = "";

  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    this.emit("text");
    done();
  }

  /** Waits until what is written after `from` holds `part`, and returns where that ends. */
  async until(part: string, from = 0): Promise<number> {
    for (;;) {
      const at = this.text.indexOf(part, from);
      if (at >= 0) return at + part.length;
      await once(this, "text");
    }
  }
}

export interface TestIo extends CliIo {
  readonly stdin: PassThrough & { isTTY: boolean };
  readonly stdout: Captured;
  readonly stderr: Captured;
}

/** Streams of a terminal, or of pipes. */
export function testIo(isTTY = false): TestIo {
  return {
    stdin: Object.assign(new PassThrough(), { isTTY }),
    stdout: new Captured(isTTY),
    stderr: new Captured(isTTY),
    signals: new EventEmitter(),
  };
}

/** Runs a command line whose standard input is `input`. */
export async function runLine(
  args: readonly string[],
  input: string | Uint8Array = "",
): Promise<{ code: number; stdout: string; stderr: string }> {
  const io = testIo();
  io.stdin.end(input);
  const code = await runProgram(args, io);
  return { code, stdout: io.stdout.text, stderr: io.stderr.text };
}

import { SingleBar } from "cli-progress";
import { systemClock } from "../clock.ts";
import type { CliIo } from "./io.ts";

/** Without a terminal, one line at most in this time. */
const lineEveryMs = 5000;

export interface Progress extends Disposable {
  update(done: number, total: number): void;
}

/** Shows how far something has come: a bar on a terminal, or a line now and then. */
export function startProgress({ stderr }: CliIo, label: string, quiet: boolean): Progress {
  if (quiet) return { update() {}, [Symbol.dispose]() {} };
  if (stderr.isTTY) return barProgress(stderr, label);
  let nextMs = systemClock.nowMs() + lineEveryMs;
  return {
    update(done, total) {
      if (systemClock.nowMs() < nextMs) return;
      nextMs = systemClock.nowMs() + lineEveryMs;
      stderr.write(`${label}: ${Math.floor((100 * done) / total)} %\n`);
    },
    [Symbol.dispose]() {},
  };
}

function barProgress(stream: NodeJS.WritableStream, label: string): Progress {
  // The terminal's wrapping is left alone: it would stay off where Ctrl-C ends the program.
  const format = `${label} [{bar}] {percentage} %`;
  const bar = new SingleBar({ format, stream, clearOnComplete: true, linewrap: true });
  let started = false;
  return {
    update(done, total) {
      if (!started) bar.start(total, done);
      else bar.update(done);
      started = true;
    },
    [Symbol.dispose]() {
      bar.stop();
    },
  };
}

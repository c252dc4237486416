import { type GenericFormatter, SingleBar } from "cli-progress";
import { systemClock } from "../clock.ts";
import type { CliIo } from "./io.ts";

/** Without a terminal, one line at most in this time. */
const lineEveryMs = 5000;
const barWidthMax = 40;
const barWidthMin = 8;

export interface Progress extends Disposable {
  update(done: number, total: number): void;
}

/**
 * Shows how far something has come: a bar on a terminal, or a line now and then.
 * @param note is shown behind it
 */
export function startProgress(
  { stderr }: CliIo,
  label: string,
  quiet: boolean,
  note: () => string = () => "",
): Progress {
  if (quiet) return { update() {}, [Symbol.dispose]() {} };
  if (stderr.isTTY) return barProgress(stderr, label, note);
  let nextMs = systemClock.nowMs() + lineEveryMs;
  return {
    update(done, total) {
      if (systemClock.nowMs() < nextMs) return;
      nextMs = systemClock.nowMs() + lineEveryMs;
      stderr.write(`${label}: ${Math.floor((100 * done) / total)} %${note()}\n`);
    },
    [Symbol.dispose]() {},
  };
}

function barProgress(stream: NodeJS.WritableStream, label: string, note: () => string): Progress {
  const format: GenericFormatter = (_, { progress, maxWidth }) =>
    barText(label, progress, note(), maxWidth - 1);
  // The terminal's wrapping is left alone: it would stay off where Ctrl-C ends the program.
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

/** A line that wraps can't be cleared: the bar gets what room is left. */
function barText(label: string, progress: number, note: string, columns: number): string {
  const end = ` ${Math.floor(100 * progress)} %${note}`;
  const width = Math.min(barWidthMax, columns - label.length - end.length - " []".length);
  if (width < barWidthMin) return (label + end).slice(0, columns);
  const done = "=".repeat(Math.round(progress * width));
  return `${label} [${done.padEnd(width, "-")}]${end}`;
}

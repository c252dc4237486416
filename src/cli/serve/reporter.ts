import { setAlarm, systemClock } from "../../clock.ts";
import type { Engine } from "../../engine.ts";
import { jsonLine, type RequestEntry, textLine } from "../../serve/request-log.ts";
import type { OutputStream } from "../io.ts";
import { LiveLine } from "./live-line.ts";
import type { ReportFlags } from "./options.ts";

/** What the process takes of the machine's memory. */
export const residentBytes = (): number => process.memoryUsage.rss();

const lines = { json: jsonLine, text: textLine };
/** Probes come every few seconds: they are logged where they fail. */
const probes = /^(\/v1)?\/(health(\/live|\/ready)?|metrics)$/;

/** What a server says on standard error: notes, failures, a line a request, and the live line below. */
export class Reporter implements Disposable {
  readonly #output: OutputStream;
  readonly #quiet: boolean;
  readonly #live: boolean;
  readonly #form: NonNullable<ReportFlags["log"]>;
  #liveLine: LiveLine | null = null;

  constructor(output: OutputStream, { log, live }: ReportFlags, quiet: boolean) {
    const shows = output.isTTY === true && !quiet;
    this.#output = output;
    this.#quiet = quiet;
    this.#live = live && shows;
    this.#form = log ?? (shows ? "text" : "off");
  }

  /** Prints a line that users must see. */
  readonly warn = (line: string): void => {
    if (this.#liveLine) this.#liveLine.print(`${line}\n`);
    else this.#output.write(`${line}\n`);
  };

  /** Prints a line, unless nothing but errors is wanted. */
  readonly note = (line: string): void => {
    if (!this.#quiet) this.warn(line);
  };

  /** Prints a failure of the server's own, with all that is known of it. */
  readonly report = (error: unknown): void => {
    this.warn(error instanceof Error ? (error.stack ?? error.message) : String(error));
  };

  readonly onEnd = (entry: RequestEntry): void => {
    if (this.#form === "off" || (probes.test(entry.path) && entry.status < 400)) return;
    this.warn(lines[this.#form](entry));
  };

  /** From now on it shows how an engine does, where there is a terminal for it. */
  watch(engine: Engine): void {
    if (!this.#live) return;
    this.#liveLine = new LiveLine(this.#output, {
      ...{ engine, clock: systemClock, setAlarm, residentBytes },
    });
  }

  [Symbol.dispose](): void {
    this.#liveLine?.[Symbol.dispose]();
    this.#liveLine = null;
  }
}

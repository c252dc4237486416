import { type Clock, setAlarm, systemClock } from "../../clock.ts";
import type { Engine } from "../../engine.ts";
import {
  jsonLine,
  type LogEntry,
  type RequestEntry,
  textLine,
  timeText,
} from "../../serve/request-log.ts";
import type { OutputStream } from "../io.ts";
import { LiveLine } from "./live-line.ts";
import type { ReportFlags } from "./options.ts";

/** What the process takes of the machine's memory. */
export const residentBytes = (): number => process.memoryUsage.rss();

const lines = { json: jsonLine, text: textLine };
/** Probes come every few seconds: they are logged where they fail. */
const probes = /^(\/v1)?\/(health(\/live|\/ready)?|metrics)$/;

/**
 * What a server says on standard error: notes, failures, a line a request, and the live line below. Where
 * requests are to be JSON, all but the live line is.
 */
export class Reporter implements Disposable {
  readonly #output: OutputStream;
  readonly #quiet: boolean;
  readonly #live: boolean;
  readonly #form: NonNullable<ReportFlags["log"]>;
  readonly #clock: Clock;
  #liveLine: LiveLine | null = null;

  constructor(
    output: OutputStream,
    { log, live }: ReportFlags,
    quiet: boolean,
    clock: Clock = systemClock,
  ) {
    const shows = output.isTTY === true && !quiet;
    this.#output = output;
    this.#quiet = quiet;
    this.#live = live && shows;
    this.#form = log ?? (shows ? "text" : "off");
    this.#clock = clock;
  }

  /** Prints a line that users must see. */
  readonly warn = (line: string): void => {
    this.#say({ level: "warning", message: line }, `warning: ${line}`);
  };

  /** Prints a line, unless nothing but errors is wanted. */
  readonly note = (line: string): void => {
    if (!this.#quiet) this.#say({ level: "info", message: line }, line);
  };

  /** Prints a failure of the server's own, with all that is known of it. */
  readonly report = (error: unknown): void => {
    const { message, stack } = error instanceof Error ? error : { message: String(error) };
    const said = { level: "error", message, ...(stack !== undefined && { stack }) } as const;
    this.#say(said, stack ?? message);
  };

  readonly onEnd = (entry: RequestEntry): void => {
    if (this.#form === "off" || (probes.test(entry.path) && entry.status < 400)) return;
    this.#print(lines[this.#form](entry));
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

  /** @param text what it is where it is for people */
  #say(said: Omit<LogEntry, "time">, text: string): void {
    const time = timeText(this.#clock.unixSeconds());
    this.#print(this.#form === "json" ? jsonLine({ time, ...said }) : text);
  }

  #print(line: string): void {
    if (this.#liveLine) this.#liveLine.print(`${line}\n`);
    else this.#output.write(`${line}\n`);
  }
}

import { styleText } from "node:util";
import type { Clock, SetAlarm } from "../../clock.ts";
import type { Engine } from "../../engine.ts";
import { bytesText } from "../format.ts";
import type { OutputStream } from "../io.ts";

const redrawMs = 1000;
/** To the line's begin, and without what it says. */
const cleared = "\r\x1b[2K";

export interface LiveLineParts {
  readonly engine: Pick<Engine, "counts" | "totals">;
  readonly clock: Clock;
  readonly setAlarm: SetAlarm;
  /** What the process takes of the machine's memory. */
  readonly residentBytes: () => number;
}

/** A terminal's last line, which says how the server does. Whatever else is printed goes above it. */
export class LiveLine implements Disposable {
  readonly #output: OutputStream & { readonly columns?: number };
  readonly #parts: LiveLineParts;
  #before: Moment;
  #shown = "";
  #stopAlarm = () => {};

  constructor(output: OutputStream, parts: LiveLineParts) {
    this.#output = output;
    this.#parts = parts;
    this.#before = this.#now();
    this.#redraw();
  }

  /** Prints what should stay. It ends in a line end. */
  readonly print = (text: string): void => {
    this.#output.write(cleared + text + this.#shown);
  };

  [Symbol.dispose](): void {
    this.#stopAlarm();
    this.#output.write(cleared);
  }

  #redraw(): void {
    const now = this.#now();
    const text = liveText(this.#before, now, this.#parts.residentBytes());
    this.#before = now;
    // A line that wraps can't be cleared.
    const fitting = text.slice(0, (this.#output.columns ?? 80) - 1);
    this.#shown = styleText("dim", fitting, { stream: this.#output });
    this.print("");
    this.#stopAlarm = this.#parts.setAlarm(redrawMs, () => this.#redraw());
  }

  #now(): Moment {
    const { engine, clock } = this.#parts;
    return { ms: clock.nowMs(), counts: engine.counts, totals: engine.totals };
  }
}

/** How it stands at a time. */
interface Moment extends Pick<Engine, "counts" | "totals"> {
  readonly ms: number;
}

/** What was done from one time to another, in short. */
export function liveText(before: Moment, now: Moment, residentBytes: number): string {
  const { running, waiting } = now.counts;
  const since = (figure: keyof Moment["totals"]) => now.totals[figure] - before.totals[figure];
  const seconds = (now.ms - before.ms) / 1000;
  const tokens = since("replyTokens");
  const rounds = since("decodeRounds");
  const parts = [`${running} running, ${waiting} waiting`];
  if (tokens > 0 && seconds > 0) parts.push(`${(tokens / seconds).toFixed(1)} tok/s`);
  if (rounds > 0) parts.push(`${(since("roundTokens") / rounds).toFixed(2)} tokens a round`);
  parts.push(bytesText(residentBytes));
  return parts.join(" · ");
}

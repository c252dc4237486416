import type { GateRun } from "./gate-run.ts";

/** Counts what must have happened before equal bytes prove anything. */
export class EventCounts<Event extends string> {
  readonly #events: Readonly<Record<Event, string>>;
  readonly #counts = new Map<Event, number>();

  /** @param events each in words, in the plural */
  constructor(events: Readonly<Record<Event, string>>) {
    this.#events = events;
  }

  /** By event. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#names.map((event) => [event, this.#counts.get(event) ?? 0]));
  }

  add(event: Event): void {
    this.#counts.set(event, (this.#counts.get(event) ?? 0) + 1);
  }

  /** What never happened, but for what can't. */
  never(except: readonly Event[] = []): string[] {
    const names = this.#names.filter(
      (event) => !this.#counts.has(event) && !except.includes(event),
    );
    return names.map((event) => `no ${this.#events[event]}`);
  }

  get #names(): Event[] {
    return Object.keys(this.#events) as Event[];
  }
}

/** How many cells ran, and how many have to before they must have shown everything. */
interface CellCount {
  readonly ran: number;
  readonly least: number;
}

/** The cell of a gate that fails where something is missing; too few cells needn't show everything. */
export async function coverageCell(
  run: GateRun,
  { ran, least }: CellCount,
  counts: Readonly<Record<string, number>>,
  missing: readonly string[],
): Promise<void> {
  if (run.isShard) {
    run.skip("coverage", "a shard shows a part");
    return;
  }
  if (ran < least) {
    run.skip("coverage", `${ran} cells ran, of the ${least} that it takes`);
    return;
  }
  const seen = Object.entries(counts).map(([event, count]) => `${event} ${count}`);
  const detail = missing.length === 0 ? seen.join(", ") : missing.join("; ");
  await run.always("coverage", async () => ({ ok: missing.length === 0, detail, counts }));
}

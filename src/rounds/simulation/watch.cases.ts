import type { HeldState } from "../../backend/backend.ts";
import type { InvariantError } from "../../errors.ts";
import type { SlotId } from "../../ids.ts";
import type { Plan } from "../../model/plan.ts";
import type { LiveStream } from "../live-stream.ts";
import type { RoundLoop } from "../loop.ts";
import type { DeviceEvents, PassKind } from "./device.cases.ts";
import type { Journal } from "./journal.cases.ts";
import type { KnownStates } from "./known-states.cases.ts";
import type { Served } from "./served.cases.ts";
import type { TurnChecks } from "./turn-checks.cases.ts";
import type { MemoryEvents } from "./watched-memory.cases.ts";

export interface WatchOptions {
  readonly journal: Journal;
  readonly known: KnownStates;
  readonly turns: TurnChecks;
  /** Those that were accepted, by their streams' numbers. */
  readonly served: readonly Served[];
  /** What the cache may take. */
  readonly cacheBytes: number;
}

/** Puts together what a device does and which stream has which slot. */
export class Watch implements DeviceEvents, MemoryEvents {
  readonly #options: WatchOptions;
  readonly #journal: Journal;
  readonly #loop: () => RoundLoop;
  /** Whether a device was lost. */
  lost = false;

  constructor(options: WatchOptions, loop: () => RoundLoop) {
    this.#options = options;
    this.#journal = options.journal;
    this.#loop = loop;
  }

  pass(kind: PassKind, plan: Plan): void {
    const parts = plan.segments.map(({ stateSlot, start, rows, window, parents }) => {
      const form = parents ? "tree" : window ? "chain" : "rows";
      return `${stateSlot}:${start}+${rows} ${form}`;
    });
    this.#journal.note(`${kind} ${parts.join(", ")}`);
    if (kind === "fill" || kind === "decode") {
      const fed = plan.segments.map(({ stateSlot }) => this.#holderOf(stateSlot));
      plan.segments.forEach(({ rows }, index) => {
        const served = fed[index];
        if (!served)
          this.#journal.fail("leak", `nobody has slot ${plan.segments[index]!.stateSlot}`);
        else if (kind === "fill") served.filledRows += rows;
        else served.decodedRows += rows;
      });
      this.#options.turns.pass(
        kind,
        fed.filter((each) => each !== null),
      );
    }
    this.#checkCache();
  }

  #checkCache(): void {
    const { bytes, entries } = this.#loop().cached;
    this.#journal.expect(bytes <= this.#options.cacheBytes, "cache", () => {
      return `${entries} cached states take ${bytes} bytes of ${this.#options.cacheBytes}`;
    });
  }

  verb(name: string, slot: SlotId | null): void {
    this.#journal.note(slot === null ? name : `${name} of slot ${slot}`);
  }

  held(slot: SlotId, held: HeldState): void {
    const stream = this.#holderOf(slot)?.stream;
    if (stream) this.#options.known.held(held, stream);
  }

  dropped(held: HeldState): void {
    this.#journal.note("a state is dropped");
    this.#options.known.dropped(held);
  }

  fault(slots: readonly SlotId[] | null): void {
    this.#journal.note(`a fault for ${slots ? `slots ${slots.join(", ")}` : "everybody"}`);
    const hurt = slots ? slots.map((slot) => this.#holderOf(slot)) : this.#options.served;
    for (const served of hurt) if (served) served.hurt = true;
  }

  misused(error: InvariantError): void {
    this.#journal.fail("misuse", error.message);
  }

  admitting(stream: LiveStream): void {
    const served = this.#options.served[stream.id]!;
    this.#options.turns.admitting(served);
    served.stream = stream;
  }

  admitted({ id, slot }: LiveStream): void {
    this.#journal.note(`stream ${id} has slot ${slot}`);
  }

  beginning(stream: LiveStream): void {
    this.#options.turns.beginning(this.#options.served[stream.id]!);
    this.#options.known.beginning(stream);
  }

  reading(stream: LiveStream): void {
    this.#journal.note(`stream ${stream.id} waits for the disk`);
    const served = this.#options.served[stream.id]!;
    void stream.reading?.then(() => this.#options.turns.read(served));
  }

  begun(stream: LiveStream): void {
    this.#journal.note(`stream ${stream.id} goes on from row ${stream.rows}`);
    this.#options.known.begun(stream, this.#loop().free.pages);
  }

  parking(stream: LiveStream): void {
    const served = this.#options.served[stream.id]!;
    const who = served.background ? "background stream" : "stream";
    this.#journal.note(`${who} ${stream.id} gives way at row ${stream.rows}`);
    this.#options.turns.parking(served);
    served.interrupted = true;
  }

  keeping({ id, rows }: LiveStream, kind: string): void {
    this.#journal.note(`the ${kind} of stream ${id} is to be kept at row ${rows}`);
  }

  releasing({ id }: LiveStream): void {
    this.#journal.note(`stream ${id} gives its slot back`);
  }

  #holderOf(slot: SlotId): Served | null {
    return this.#options.served.find((each) => each.hasSlot && each.stream!.slot === slot) ?? null;
  }
}

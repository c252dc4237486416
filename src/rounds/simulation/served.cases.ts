import type { TokenId } from "../../ids.ts";
import { pagesFor } from "../../state/kv-pages.ts";
import type { LiveStream, RoundOutcome } from "../live-stream.ts";
import type { Arrival } from "./arrivals.cases.ts";

/** A request that was accepted, as it is seen from outside. */
export class Served {
  readonly number: number;
  readonly arrival: Arrival;
  readonly tokens: TokenId[] = [];
  /** Resolves with its end. */
  readonly ended: Promise<void>;
  readonly end: () => void;
  outcomes: RoundOutcome[] = [];
  /** Since it has a slot: what the loop knows of it. */
  stream: LiveStream | null = null;
  cancelled = false;
  /** Whether a fault was played of which it may hear. */
  hurt = false;
  /** Whether it had to begin again: after giving way. */
  interrupted = false;
  /** Rows that were computed for it, in prompts and in rounds. */
  filledRows = 0;
  decodedRows = 0;
  /** Chunks of others since its own, while it could have had one. */
  passedOver = 0;
  /** Rounds of others since its own chunk, while it could have had one. */
  roundsBeforeChunk = 0;
  /** Rounds since its own, while it decodes. */
  roundsMissed = 0;
  /** Whether there was a slot and room for it when it came. */
  expected = false;
  /** How long the device had been idle when it could last do something for it. */
  idleMs = 0;
  /** Passes of background streams since it came. */
  backgroundPasses = 0;

  constructor(number: number, arrival: Arrival) {
    this.number = number;
    this.arrival = arrival;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.end = resolve;
  }

  get background(): boolean {
    return this.arrival.request.priority === "background";
  }

  /** Pages that it may come to need. */
  get pagesMost(): number {
    const { promptIds, maxTokens } = this.arrival.request;
    return pagesFor(promptIds.length + maxTokens);
  }

  get over(): boolean {
    return this.outcomes.length > 0;
  }

  get hasSlot(): boolean {
    return !this.over && this.stream !== null && this.stream.slot !== null;
  }

  get doing(): "waiting" | "reading" | "filling" | "decoding" | "done" {
    if (!this.stream) return "waiting";
    return this.stream.reading ? "reading" : this.stream.phase;
  }

  /** Whether the next chunk might be its own. */
  get fillable(): boolean {
    return this.hasSlot && this.doing === "filling";
  }

  get decoding(): boolean {
    return this.hasSlot && this.doing === "decoding";
  }

  /** Foreground ones first, and the first to come first. */
  comesBefore(other: Served): boolean {
    if (this.background !== other.background) return other.background;
    return this.number < other.number;
  }
}

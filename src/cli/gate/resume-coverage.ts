import { EventCounts } from "./event-counts.ts";
import type { ServedReply } from "./resume-serve.ts";

/** What must have happened. */
const events = {
  cached: "prompts that were cached in part",
  drafted: "replies on cached states with accepted drafts",
  called: "replies that call a function",
  ended: "replies that ended by themselves",
  cut: "replies that ended by their length",
  evicted: "prompts of which everything was evicted",
  restored: "states that were read from disk",
  interrupted: "prompts that went on from an interrupted reply's state",
} as const;

/** So many cells must show every event. */
export const coverageCellsMin = 60;

/** Counts what a gate's replies went through. */
export class ResumeCoverage extends EventCounts<keyof typeof events> {
  constructor() {
    super(events);
  }

  addReply({ cachedTokens, cacheMiss, finishReason, toolCalls, speculative }: ServedReply): void {
    if (cachedTokens > 0) this.add("cached");
    if (cachedTokens > 0 && speculative.accepted > 0) this.add("drafted");
    if (toolCalls.length > 0) this.add("called");
    this.add(finishReason === "length" ? "cut" : "ended");
    if (cacheMiss === "evicted") this.add("evicted");
  }

  addRestores(count: number): void {
    for (let left = count; left > 0; left--) this.add("restored");
  }
}

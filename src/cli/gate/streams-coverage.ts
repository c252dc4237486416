import { EventCounts } from "./event-counts.ts";

/** What must have happened. */
const events = {
  eight: "rounds of 8 streams",
  mixed: "rounds of drafted and plain streams",
  windows: "rounds with windows of several streams",
  sharedPages: "rounds of streams with a page in common",
  waited: "rounds while a stream waited",
  joinedPrompt: "streams that came in the middle of another's prompt",
  joinedReply: "streams that came in the middle of another's reply",
  left: "streams that left others behind",
  stopped: "streams that a stop ended",
  cancelled: "cancelled streams",
  narrow: "streams drawn from few candidates",
  cached: "prompts that began from a cached state",
  copied: "pages copied for a stream of its own",
  parked: "streams parked for one in the foreground",
  outgrown: "streams parked for want of pages",
  resumed: "parked streams that went on from their state",
  refilled: "parked streams that were fed from the start",
} as const;

export type StreamsEvent = keyof typeof events;

/** So many cells must show every event. */
export const coverageCellsMin = 32;

/** Counts what the streams of a gate's cells went through. */
export class StreamsCoverage extends EventCounts<StreamsEvent> {
  constructor() {
    super(events);
  }
}

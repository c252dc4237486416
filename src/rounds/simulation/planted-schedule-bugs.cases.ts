import { DecodeShare } from "../decode-share.ts";
import { LiveStream } from "../live-stream.ts";
import { RoundLoop } from "../loop.ts";
import { StreamMemory } from "../stream-memory.ts";
import { patchGetter, patchMethod } from "./patch.cases.ts";
import { type PlantedBug, together } from "./planted-bug.cases.ts";

/** Bugs in who is served when. */
export const scheduleBugs: readonly PlantedBug[] = [
  { name: "the queue holds one too many", foundBy: ["queue"], plant: longerQueue },
  {
    name: "short prompts go before a long one for ever",
    foundBy: ["wait"],
    plant: () =>
      patchMethod(StreamMemory.prototype, "admit", (admit) => {
        return function (this: StreamMemory, stream) {
          Object.defineProperty(stream, "passedOver", { get: () => 0, set: () => {} });
          admit.call(this, stream);
        };
      }),
  },
  {
    name: "prompts wait until nothing decodes",
    foundBy: ["wait"],
    plant: () => patchGetter(DecodeShare.prototype, "fillDue", () => false),
  },
  {
    name: "background streams never give way",
    foundBy: ["turn"],
    plant: () => patchGetter(LiveStream.prototype, "background", () => false),
  },
  {
    name: "a slot is lost with a client that leaves",
    foundBy: ["leak", "ends"],
    plant: () =>
      patchMethod(StreamMemory.prototype, "release", (release) => {
        return function (this: StreamMemory, stream) {
          if (!stream.cancelled) release.call(this, stream);
        };
      }),
  },
  {
    name: "a stream that gave way has lost its last token",
    foundBy: ["tokens"],
    plant: () =>
      patchMethod(StreamMemory.prototype, "park", (park) => {
        return async function (this: StreamMemory, stream) {
          await park.call(this, stream);
          if (stream.replyTokens > 0) stream.ids.pop();
        };
      }),
  },
  {
    name: "the schedule goes by chance",
    foundBy: ["replay"],
    plant: () => patchGetter(DecodeShare.prototype, "fillDue", () => Math.random() < 0.5),
  },
];

/** A slot that isn't there counts as free while a request is queued. */
function longerQueue(): () => void {
  let queueing = false;
  return together(
    patchMethod(RoundLoop.prototype, "submit", (submit) => {
      return function (this: RoundLoop, request, sink) {
        queueing = true;
        try {
          return submit.call(this, request, sink);
        } finally {
          queueing = false;
        }
      };
    }),
    patchGetter(StreamMemory.prototype, "free", ({ slots, pages }) => {
      return { slots: queueing ? slots + 1 : slots, pages };
    }),
  );
}

import type { LiveStream } from "../live-stream.ts";
import { StreamMemory } from "../stream-memory.ts";
import { patchMethod } from "./patch.cases.ts";

/** Hears which stream has what. */
export interface MemoryEvents {
  admitting(stream: LiveStream): void;
  admitted(stream: LiveStream): void;
  beginning(stream: LiveStream): void;
  /** Its state is being read: `stream.reading` ends. */
  reading(stream: LiveStream): void;
  /** It knows where it goes on from, which is `stream.rows`. */
  begun(stream: LiveStream): void;
  parking(stream: LiveStream): void;
  keeping(stream: LiveStream, kind: string): void;
  releasing(stream: LiveStream): void;
}

/**
 * Lets somebody listen to the memory of every loop: from outside it can't be seen whose a slot is.
 * @returns ends that
 */
export function watchMemory(events: MemoryEvents): () => void {
  const { prototype } = StreamMemory;
  const undo = [
    patchMethod(prototype, "admit", (admit) => {
      return function (this: StreamMemory, stream) {
        events.admitting(stream);
        try {
          admit.call(this, stream);
        } finally {
          events.admitted(stream);
        }
      };
    }),
    patchMethod(prototype, "begin", (begin) => {
      return async function (this: StreamMemory, stream) {
        events.beginning(stream);
        const begun = await begin.call(this, stream);
        if (begun) events.begun(stream);
        else events.reading(stream);
        return begun;
      };
    }),
    patchMethod(prototype, "park", (park) => {
      return async function (this: StreamMemory, stream) {
        events.parking(stream);
        await park.call(this, stream);
      };
    }),
    patchMethod(prototype, "keep", (keep) => {
      return async function (this: StreamMemory, stream, kind) {
        events.keeping(stream, kind);
        await keep.call(this, stream, kind);
      };
    }),
    patchMethod(prototype, "release", (release) => {
      return function (this: StreamMemory, stream) {
        events.releasing(stream);
        release.call(this, stream);
      };
    }),
  ];
  return () => {
    for (const each of undo.reverse()) each();
  };
}

import { createHash } from "node:crypto";
import type { Backend, Snapshot } from "../../backend/backend.ts";
import { changedBackend } from "./changed-backend.ts";

/** Sees what an engine's rounds ask of its backend. */
export class ResumeWatch {
  /** Rows of prompts that were computed. */
  promptRows = 0;
  /** How often a stream went on from a state on disk. */
  restores = 0;
  /** Hashes of the drafter's contexts behind the replies that ended, in their order. */
  readonly contexts: string[] = [];

  /** The same backend, watched. */
  view(backend: Backend): Backend {
    return changedBackend(backend, {
      prefill: (plan) => {
        this.promptRows += plan.ids.length;
        return backend.prefill(plan);
      },
      restore: (slot, pages, snapshot) => {
        this.restores++;
        backend.restore(slot, pages, snapshot);
      },
      save: async (source, pages, rows) => {
        const snapshot = await backend.save(source, pages, rows);
        // Of a slot it is a reply's end that is saved, for its fingerprint.
        if (typeof source === "number") this.contexts.push(contextHash(snapshot));
        return snapshot;
      },
    });
  }
}

function contextHash({ draftKeys, draftValues }: Snapshot): string {
  const bytes = ({ buffer, byteOffset, byteLength }: Float32Array) =>
    new Uint8Array(buffer, byteOffset, byteLength);
  return createHash("sha256").update(bytes(draftKeys)).update(bytes(draftValues)).digest("base64");
}

import { chunksGate } from "./chunks.ts";
import { draftedGate } from "./drafted.ts";
import type { GateRun } from "./gate-run.ts";
import { goldenGate } from "./golden.ts";
import { httpGate } from "./http.ts";
import type { GateOptions } from "./options.ts";
import { resumeGate } from "./resume.ts";
import { rowsGate } from "./rows.ts";
import { streamsGate } from "./streams.ts";
import { syntheticGate } from "./synthetic.ts";

export interface Gate {
  readonly name: string;
  readonly about: string;
  /** Runs the cells; returns a line about the backend. */
  run(run: GateRun, options: GateOptions): Promise<string>;
}

export const gates: readonly Gate[] = [
  {
    name: "golden",
    about: "tokens, logits, hidden and recurrent states equal those of transformers",
    run: goldenGate,
  },
  {
    name: "chunks",
    about: "state, KV and logits don't depend on how a prompt is cut, nor on moved slots",
    run: chunksGate,
  },
  {
    name: "rows",
    about: "a row alone equals the same row among others, shuffled and beside NaN",
    run: rowsGate,
  },
  {
    name: "synthetic",
    about: "random models, no files: chunks, windows, moves, snapshots equal one row at a time",
    run: syntheticGate,
  },
  {
    name: "drafted",
    about: "a reply with drafts, right and wrong, equals the serial one: ids, logits, state",
    run: draftedGate,
  },
  {
    name: "streams",
    about: "2 to 8 streams that come and go, drafted and plain, each equal its reply alone",
    run: streamsGate,
  },
  {
    name: "resume",
    about:
      "a conversation's turns cost their new tokens, and equal those of no cache, come what may",
    run: resumeGate,
  },
  {
    name: "http",
    about: "a server's replies, streamed and whole, drafted and plain, equal the command line's",
    run: httpGate,
  },
];

/**
 * A process that serves requests with a cache on disk, and kills itself while it writes to it:
 * `node resume-victim.ts FILE`, with what a `VictimTask` says.
 */
import { readFile } from "node:fs/promises";
import type { ChatRequest } from "../../engine.ts";
import { openBackend } from "../../node.ts";
import type { SpillFiles } from "../../state/spill-files.ts";
import { openResumeEngine, type ResumeMemory, type ResumeSource } from "./resume-engine.ts";

/** What the file says. */
export interface VictimTask {
  readonly source: Omit<ResumeSource, "open">;
  readonly memory: ResumeMemory;
  readonly requests: readonly ChatRequest[];
  readonly death: Death;
}

/** When it dies. */
export interface Death {
  /** The file, from 0 on, in the order in which they are written. */
  readonly file: number;
  /** Pieces of it that are written whole, before half of the next; of too many, before it has its name. */
  readonly pieces: number;
}

function dyingFiles(files: SpillFiles, death: Death): SpillFiles {
  let file = 0;
  return {
    ...files,
    write: (name, parts) =>
      files.write(name, file++ === death.file ? dyingParts(parts, death.pieces) : parts),
  };
}

function* dyingParts(parts: Iterable<Uint8Array>, pieces: number): Generator<Uint8Array> {
  let left = pieces;
  for (const bytes of parts) {
    if (left-- === 0) {
      yield bytes.subarray(0, bytes.length / 2);
      break;
    }
    yield bytes;
  }
  process.kill(process.pid, "SIGKILL");
}

const text = await readFile(process.argv[2]!, "utf8");
const { source, memory, requests, death }: VictimTask = JSON.parse(text);
const { engine } = await openResumeEngine(
  { ...source, open: (sizes) => openBackend(sizes, source.choice) },
  memory,
  (files) => dyingFiles(files, death),
);
for (const request of requests) await engine.chat(request).result;

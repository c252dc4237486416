/**
 * A process that writes entries until it is killed: `node spill-writer.cases.ts FOLDER [ENTRY PART]`. Prints
 * the number of each that is written. With a number of an entry and of a part of its file, it kills itself
 * when half of that part is written.
 */
import type { SpillFiles } from "./spill-files.ts";
import { spillFiles } from "./spill-files-node.ts";
import { killedEntry, sampleIdentity } from "./spill-samples.cases.ts";
import { SpillStore } from "./spill-store.ts";

const [folder = "", lastEntry = "-1", lastPart = "0"] = process.argv.slice(2);
let written = 0;

function* untilKilled(parts: Iterable<Uint8Array>): Generator<Uint8Array> {
  let part = 0;
  for (const bytes of parts) {
    if (written === Number(lastEntry) && part++ === Number(lastPart)) {
      yield bytes.subarray(0, bytes.length / 2);
      process.kill(process.pid, "SIGKILL");
    }
    yield bytes;
  }
}

const disk = spillFiles(folder);
const files: SpillFiles = {
  ...disk,
  write: (name, parts) => disk.write(name, untilKilled(parts)),
};
const store = await SpillStore.open(files, sampleIdentity, { maxBytes: 2 ** 40, minFreeBytes: 0 });
for (;;) {
  const { ids, context, snapshot } = killedEntry(written);
  if (!(await store.write(ids, context, snapshot))) throw new Error("not written");
  console.log(written++);
}

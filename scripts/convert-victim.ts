/**
 * A process that converts, and kills itself on the way: `node scripts/convert-victim.ts SOURCE OUT POINT`.
 * Points are before and after each call that changes a file, and in the middle of each write. With more
 * points than there are it ends well, and prints how many there were.
 */
import { openFolder } from "../src/checkpoint/source-node.ts";
import { convertInto } from "../src/weights/convert.ts";
import { createOutputFolder, diskCalls, type OutputCalls } from "../src/weights/output-node.ts";

const [, , source = "", output = "", point = ""] = process.argv;
let passed = 0;

function die(): void {
  if (passed++ === Number(point)) process.kill(process.pid, "SIGKILL");
}

async function around<T>(work: () => Promise<T>): Promise<T> {
  die();
  const value = await work();
  die();
  return value;
}

const calls: OutputCalls = {
  // A write of fewer bytes is followed by one of the rest.
  writeAt: (handle, bytes, position) =>
    around(() =>
      diskCalls.writeAt(handle, bytes.subarray(0, Math.ceil(bytes.length / 2)), position),
    ),
  sync: (handle) => around(() => diskCalls.sync(handle)),
  rename: (from, to) => around(() => diskCalls.rename(from, to)),
};
const options = { bits: 4, groupSize: 64, shardBytes: 100_000 } as const;
await convertInto(await openFolder(source), await createOutputFolder(output, calls), options);
console.log(passed);

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nextTask } from "../clock.ts";
import { spillFiles } from "./spill-files-node.ts";
import { bitsOf, killedEntry, sampleIdentity } from "./spill-samples.cases.ts";
import { ample } from "./spill-store.cases.ts";
import { SpillStore } from "./spill-store.ts";

const writer = fileURLToPath(import.meta.resolve("./spill-writer.cases.ts"));

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "deltafold-kill-"));
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

const partsIn = (folder: string): string[] =>
  readdirSync(folder).filter((file) => file.endsWith(".part"));

/** Starts a writer; `written` is how many entries it said it had written. */
function start(folder: string, ...args: readonly string[]) {
  const child = spawn(process.execPath, [writer, folder, ...args]);
  const said = { written: 0, errors: "" };
  child.stdout.on("data", (data: Buffer) => {
    said.written += data.toString().split("\n").length - 1;
  });
  child.stderr.on("data", (data: Buffer) => {
    said.errors += data.toString();
  });
  return { child, said, closed: once(child, "close") };
}

const isRunning = (child: ChildProcess): boolean =>
  child.exitCode === null && child.signalCode === null;

/** Opens what a killed writer has left. All that it had written must be there, and nothing by halves. */
async function checkLeft(folder: string, written: number): Promise<void> {
  const store = await SpillStore.open(spillFiles(folder), sampleIdentity, ample);
  expect(partsIn(folder)).toEqual([]);
  expect(readdirSync(folder)).toHaveLength(store.count);
  // The last may have its name without a word of it.
  expect([written, written + 1]).toContain(store.count);
  for (let index = 0; index < store.count; index++) {
    const entry = killedEntry(index);
    const { name, rows } = store.longest([...entry.ids, 0], true)!;
    expect(rows).toBe(entry.ids.length);
    expect(bitsOf(await store.read(name))).toEqual(bitsOf(entry));
  }
}

describe("a writer that is killed", () => {
  // Parts of a file: header, ids, six arrays, checksum.
  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8])("in part %s of a file leaves those before", async (part) => {
    const { said, closed } = start(root, "2", String(part));
    const [, signal] = await closed;
    expect({ signal, ...said }).toEqual({ signal: "SIGKILL", written: 2, errors: "" });
    expect(partsIn(root)).toHaveLength(1);
    await checkLeft(root, 2);
  });

  it("at any time leaves whole entries alone", async () => {
    const killAt = fc.record({ written: fc.nat(3), partBytes: fc.nat(2 ** 21) });
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(killAt, async ({ written, partBytes }) => {
        const folder = join(root, String(runs++));
        const { child, said, closed } = start(folder);
        const grown = () =>
          said.written >= written &&
          partsIn(folder).some((file) => {
            const stats = statSync(join(folder, file), { throwIfNoEntry: false });
            return (stats?.size ?? 0) >= partBytes;
          });
        await once(child.stdout, "data");
        while (isRunning(child) && !grown()) await nextTask();
        child.kill("SIGKILL");
        const [, signal] = await closed;
        expect({ signal, errors: said.errors }).toEqual({ signal: "SIGKILL", errors: "" });
        await checkLeft(folder, said.written);
      }),
      { numRuns: 12, endOnFailure: true },
    );
  });
});

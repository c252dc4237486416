import { EventEmitter } from "node:events";
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Alarms } from "../../serve/alarms.cases.ts";
import { KeyRing } from "./key-ring.ts";

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "deltafold-ring-"));
  path = join(folder, "keys");
});
afterEach(() => rmSync(folder, { recursive: true }));

/** As editors do: a file that is whole takes the place of the other. */
function write(text: string): void {
  const next = `${path}.next`;
  writeFileSync(next, text, { mode: 0o600 });
  renameSync(next, path);
}

function ringOf(flags: ConstructorParameters<typeof KeyRing>[0]) {
  const alarms = new Alarms();
  const signals = new EventEmitter();
  const notes: string[] = [];
  const warnings: string[] = [];
  const ring = new KeyRing(flags, {
    ...{ signals, setAlarm: alarms.set },
    note: (line) => notes.push(line),
    warn: (line) => warnings.push(line),
  });
  const labels = (...keys: string[]) => keys.map((key) => ring.keys!.find(key)?.label ?? null);
  return { ring, alarms, signals, notes, warnings, labels };
}

test("without keys everybody is let in, and nothing is watched", () => {
  const { ring, alarms, signals } = ringOf({});
  expect(ring.keys).toBeNull();
  expect([alarms.count, signals.listenerCount("SIGHUP")]).toEqual([0, 0]);
});

test("keys of flags and of the file are let in alike", () => {
  write("ann: sk-1\nsk-2");
  const { ring, labels } = ringOf({ apiKey: ["sk-3", "sk-4"], apiKeyFile: path });
  expect(labels("sk-1", "sk-2", "sk-3", "sk-4", "sk-5")).toEqual([
    ...["ann", "line-2", "key-1", "key-2", null],
  ]);
  ring[Symbol.dispose]();
});

test("a file that changes is read again within a second", () => {
  write("ann: sk-1");
  const { ring, alarms, notes, warnings, labels } = ringOf({ apiKey: ["sk-0"], apiKeyFile: path });
  alarms.pass(1000);
  expect(notes).toEqual([]);
  write("ben: sk-2");
  alarms.pass(1000);
  expect(labels("sk-0", "sk-1", "sk-2")).toEqual(["key-1", null, "ben"]);
  expect(notes).toEqual([`The keys of ${path} were read again.`]);
  alarms.pass(1000);
  expect([notes.length, warnings.length]).toEqual([1, 0]);
  ring[Symbol.dispose]();
  expect(alarms.count).toBe(0);
});

test("SIGHUP has it read at once, changed or not", () => {
  write("ann: sk-1");
  const { ring, signals, notes, labels } = ringOf({ apiKeyFile: path });
  signals.emit("SIGHUP");
  write("ben: sk-2");
  signals.emit("SIGHUP");
  expect(labels("sk-1", "sk-2")).toEqual([null, "ben"]);
  expect(notes).toHaveLength(2);
  ring[Symbol.dispose]();
  expect(signals.listenerCount("SIGHUP")).toBe(0);
});

test("a file that becomes bad leaves the keys as they were, and is told of once", () => {
  write("ann: sk-1");
  const { ring, alarms, notes, warnings, labels } = ringOf({ apiKeyFile: path });
  const stay = "The keys stay as they were.";
  write("ann: sk 1");
  alarms.pass(500);
  alarms.pass(500);
  expect(warnings).toEqual([expect.stringMatching(`^${stay} Line 1 of ${path} must be KEY`)]);
  write("# none");
  alarms.pass(500);
  expect(warnings.at(-1)).toBe(`${stay} ${path} holds no key: write one a line.`);
  write(`long: ${"x".repeat(300)}`);
  alarms.pass(500);
  expect(warnings.at(-1)).toMatch(`${stay} The API key long must be 1 to 256 printable`);
  rmSync(path);
  alarms.pass(500);
  expect(warnings.at(-1)).toBe(`${stay} ${path} does not exist.`);
  expect(warnings).toHaveLength(4);
  expect([labels("sk-1"), notes]).toEqual([["ann"], []]);
  write("ben: sk-2");
  alarms.pass(500);
  expect([labels("sk-1", "sk-2"), notes.length]).toEqual([[null, "ben"], 1]);
  ring[Symbol.dispose]();
});

test.skipIf(process.platform === "win32")("so does one that others may read", () => {
  write("ann: sk-1");
  const { ring, alarms, warnings, labels } = ringOf({ apiKeyFile: path });
  writeFileSync(path, "ben: sk-2");
  chmodSync(path, 0o644);
  alarms.pass(500);
  expect(warnings).toEqual([expect.stringContaining(`Run: chmod 600 ${path}`)]);
  expect(labels("sk-1", "sk-2")).toEqual(["ann", null]);
  ring[Symbol.dispose]();
});

test("what can't be used from the start is refused", () => {
  expect(() => ringOf({ apiKeyFile: path })).toThrow(`${path} does not exist.`);
  expect(() => ringOf({ apiKey: [""] })).toThrow("The API key key-1 must be 1 to 256");
  const variable = { apiKey: ["a b"], apiKeyInVariable: true };
  expect(() => ringOf(variable)).toThrow("The API key DELTAFOLD_API_KEY must be 1 to 256");
});

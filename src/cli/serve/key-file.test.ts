import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { InputError } from "../../errors.ts";
import { keyFileBytesMax } from "../../limits.ts";
import { fileStamp, readKeyFile } from "./key-file.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "deltafold-keys-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function fileOf(text: string | Uint8Array, mode = 0o600): string {
  const path = join(folder, `keys-${files++}`);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

test("keys stand one a line, with labels or without", () => {
  const lines = [
    ...["\ufeff# the team's", "", "ann: sk-ann", "  ben.b-2_x:\t sk:ben  ", "sk-bare", "\t"],
    ...["#ann: sk-old", "sk:colon", "a:b", "last: sk#1"],
  ];
  const keys = [
    { label: "ann", key: "sk-ann" },
    { label: "ben.b-2_x", key: "sk:ben" },
    { label: "line-5", key: "sk-bare" },
    { label: "line-8", key: "sk:colon" },
    { label: "line-9", key: "a:b" },
    { label: "last", key: "sk#1" },
  ];
  for (const end of ["\n", "\r\n"]) {
    expect(readKeyFile(fileOf(lines.join(end)))).toEqual(keys);
    expect(readKeyFile(fileOf(lines.join(end) + end))).toEqual(keys);
  }
});

test.each([
  ["ann sk-ann", "Line 1"],
  ["sk-fine\nann: sk ann", "Line 2"],
  ["\n\nan n: sk-ann", "Line 3"],
  ["ann:", null],
  ["\u001b[2J: sk-ann", "Line 1"],
])("%j is no file of keys", (text, line) => {
  const path = fileOf(text);
  // A colon without a key is a key that ends in a colon.
  if (line === null) expect(readKeyFile(path)).toEqual([{ label: "line-1", key: "ann:" }]);
  else {
    const rule = `${line} of ${path} must be KEY or LABEL: KEY, where LABEL has letters`;
    expect(() => readKeyFile(path)).toThrow(rule);
    expect(() => readKeyFile(path)).not.toThrow("sk");
  }
});

test.each(["", "\n", "# nothing\n\n"])("%j holds no key", (text) => {
  expect(() => readKeyFile(fileOf(text))).toThrow(" holds no key: write one a line.");
});

test("files that aren't there, aren't files, or are too large", () => {
  const absent = join(folder, "absent");
  expect(() => readKeyFile(absent)).toThrow(`${absent} does not exist.`);
  const other = join(folder, "folder");
  mkdirSync(other, { mode: 0o700 });
  expect(() => readKeyFile(other)).toThrow(`${other} is not a file.`);
  const large = fileOf(new Uint8Array(keyFileBytesMax + 1).fill(0x0a));
  expect(() => readKeyFile(large)).toThrow(`${large} has more than ${keyFileBytesMax} bytes.`);
});

test("a path that leads nowhere is refused with the reason", () => {
  const inFile = join(fileOf("sk-ann"), "keys");
  expect(() => readKeyFile(inFile)).toThrow(new InputError(`${inFile} can't be read: ENOTDIR.`));
  const long = join(folder, "k".repeat(1000));
  expect(() => readKeyFile(long)).toThrow(new InputError(`${long} can't be read: ENAMETOOLONG.`));
});

const hasRights = process.platform !== "win32";

test.skipIf(!hasRights)("so is a link in a circle", () => {
  const link = join(folder, "link");
  symlinkSync(link, link);
  expect(() => readKeyFile(link)).toThrow(new InputError(`${link} can't be read: ELOOP.`));
});

test.skipIf(!hasRights).each([0o644, 0o640, 0o660, 0o604, 0o602, 0o601, 0o777])(
  "rights of %o let others at it",
  (mode) => {
    const path = fileOf("sk-ann", mode);
    const rights = mode.toString(8).padStart(4, "0");
    expect(() => readKeyFile(path)).toThrow(
      `${path} holds keys, and its rights ${rights} let other users at it. Run: chmod 600 ${path}`,
    );
  },
);

test.skipIf(!hasRights).each([0o600, 0o400, 0o700])("rights of %o don't", (mode) => {
  expect(readKeyFile(fileOf("sk-ann", mode))).toHaveLength(1);
});

test.skipIf(process.getuid?.() !== 0)("the group may read what is another user's", () => {
  const fileOfAnother = (mode: number) => {
    const path = fileOf("sk-ann", mode);
    chownSync(path, 12_345, 12_345);
    return path;
  };
  for (const mode of [0o400, 0o440, 0o640]) {
    expect(readKeyFile(fileOfAnother(mode))).toHaveLength(1);
  }
  for (const mode of [0o444, 0o460, 0o450]) {
    expect(() => readKeyFile(fileOfAnother(mode))).toThrow("let other users at it");
  }
});

test.skipIf(!hasRights)("a pipe is no file, and nobody waits for it", () => {
  const pipe = join(folder, "pipe");
  execFileSync("sh", ["-c", 'mkfifo -m 600 "$0"', pipe]);
  expect(() => readKeyFile(pipe)).toThrow(`${pipe} is not a file.`);
});

test("a file's stamp changes with whatever is done to it", () => {
  const path = fileOf("sk-ann");
  const stamps = [fileStamp(path)];
  expect(fileStamp(path)).toBe(stamps[0]);
  const done = (change: () => void) => {
    change();
    stamps.push(fileStamp(path));
  };
  done(() => writeFileSync(path, "sk-anne"));
  done(() => renameSync(fileOf("sk-ben"), path));
  if (hasRights) done(() => chmodSync(path, 0o644));
  done(() => rmSync(path));
  expect(stamps.at(-1)).toBe("ENOENT");
  expect(new Set(stamps).size).toBe(stamps.length);
});

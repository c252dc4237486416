import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DeltafoldError } from "../errors.ts";
import { explained, freeBytes } from "./file-system-node.ts";

const failed = (code: string) => Object.assign(new Error(`${code}: some call`), { code });

test("what a user can do something about is said in words", () => {
  const full = explained("/cache", failed("ENOSPC"));
  expect(full).toBeInstanceOf(DeltafoldError);
  expect(full).toMatchObject({ message: "/cache: can't be written: no space is left on the disk" });
  expect(explained("/cache", failed("EROFS"))).toMatchObject({ code: "write_failed" });
  const bug = new TypeError("x is not a function");
  expect(explained("/cache", bug)).toBe(bug);
});

test("a folder that isn't made yet has the room of its parent's disk", async () => {
  const made = await freeBytes(tmpdir());
  expect(made).toBeGreaterThan(0);
  // Others write to that disk meanwhile.
  expect(await freeBytes(join(tmpdir(), "not", "made", "yet"))).toBeGreaterThan(made / 2);
});

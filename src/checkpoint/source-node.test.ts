import { chmod, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CheckpointError } from "../errors.ts";
import { checkRelativePath } from "./source.ts";
import { openFolder } from "./source-node.ts";

let root = "";
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "deltafold-source-"));
});
afterAll(() => rm(root, { recursive: true }));

describe("openFolder", () => {
  const longPath = Array.from({ length: 12 }, (_, i) => `${"long".repeat(50)}${i}`).join("/");
  it.each(["モデル　é", "with space", "100%25", "#hash?query", longPath])(
    "loads from a folder of any name %#",
    async (name) => {
      const path = join(root, name);
      await mkdir(path, { recursive: true });
      await writeFile(join(path, "übung %.json"), "{}");
      const folder = await openFolder(path);
      expect(await folder.list()).toEqual(["übung %.json"]);
      expect(await folder.text("übung %.json")).toBe("{}");
    },
  );

  it("names the path that is missing, or not a folder", async () => {
    await expect(openFolder(join(root, "absent"))).rejects.toThrow(/absent: does not exist/);
    await writeFile(join(root, "file"), "x");
    await expect(openFolder(join(root, "file"))).rejects.toThrow(/file: is not a folder/);
    await expect(openFolder(join(root, "file/below"))).rejects.toThrow(CheckpointError);
  });

  it.skipIf(process.getuid?.() === 0)("names a folder that it may not read", async () => {
    const path = join(root, "closed");
    await mkdir(path);
    await chmod(path, 0);
    await expect(openFolder(path)).rejects.toThrow(/closed: can't be read: permission denied/);
  });

  it("follows symbolic links, which the hub's cache is made of", async () => {
    const path = join(root, "links");
    await mkdir(path);
    await writeFile(join(root, "blob"), "content");
    await symlink(join(root, "blob"), join(path, "config.json"));
    const folder = await openFolder(path);
    expect(await folder.has("config.json")).toBe(true);
    expect(await folder.text("config.json")).toBe("content");
  });

  it("refuses ranges outside the file and files that shrink", async () => {
    await writeFile(join(root, "bytes"), new Uint8Array(100));
    const source = await (await openFolder(root)).open("bytes");
    expect(source.size).toBe(100);
    expect((await source.read(90, 10)).length).toBe(10);
    await expect(source.read(90, 11)).rejects.toThrow(/bytes 90 to 101 are wanted.* 100 bytes/);
    await expect(source.read(-1, 2)).rejects.toThrow(CheckpointError);
    await expect(source.read(0, 2 ** 60)).rejects.toThrow(CheckpointError);
    await truncate(join(root, "bytes"), 40);
    await expect(source.read(30, 20)).rejects.toThrow(/10 of 20 bytes/);
    await source.close();
  });

  it("refuses text that is not UTF-8", async () => {
    await writeFile(join(root, "latin"), new Uint8Array([0x7b, 0xff]));
    await expect((await openFolder(root)).text("latin")).rejects.toThrow(/latin: is not UTF-8/);
  });
});

describe("checkRelativePath", () => {
  it.each(["../x", "a/../../x", "/etc/passwd", "C:\\x", "c:x", "..\\x", "\\\\host\\x", "", "a//b"])(
    "refuses %j",
    (path) => {
      expect(() => checkRelativePath("index.json", path)).toThrow(/index\.json: .*not a path/);
    },
  );
  it.each(["model-00001-of-00002.safetensors", "sub/x", "a..b", "é 　%"])("takes %j", (path) => {
    expect(() => checkRelativePath("index.json", path)).not.toThrow();
  });
});

import { mkdir, mkdtemp, readdir, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
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

async function failWith(code: string): Promise<never> {
  throw Object.assign(new Error(code), { code });
}

describe("openFolder", () => {
  const longPath = Array.from({ length: 12 }, (_, i) => `${"long".repeat(50)}${i}`).join("/");
  it.each(["モデル　é", "with space", "100%25", "#hash?query", longPath])(
    "loads from a folder of any name %#",
    async (name) => {
      const path = join(root, name);
      await mkdir(path, { recursive: true });
      await writeFile(join(path, "übung %.json"), "{}");
      const folder = await openFolder(path);
      expect(await folder.text("übung %.json")).toBe("{}");
    },
  );

  it("names the path that is missing, or not a folder", async () => {
    await expect(openFolder(join(root, "absent"))).rejects.toThrow(/absent: does not exist/);
    await writeFile(join(root, "file"), "x");
    await expect(openFolder(join(root, "file"))).rejects.toThrow(/file: is not a folder/);
    await writeFile(join(root, "model.GGUF"), "GGUF");
    await expect(openFolder(join(root, "model.GGUF"))).rejects.toThrow(
      /model.GGUF: is a GGUF file, from which deltafold convert makes a folder/,
    );
    await expect(openFolder(join(root, "file/below"))).rejects.toThrow(CheckpointError);
  });

  it("names a folder that it may not read", async () => {
    const path = join(root, "closed");
    await mkdir(path);
    const closed = openFolder(path, { stat, readdir: () => failWith("EACCES") });
    await expect(closed).rejects.toThrow(/closed: can't be read: permission denied/);
  });

  it.each([
    ["EACCES", "can't be read: permission denied"],
    ["EIO", "can't be read (EIO)"],
  ])("doesn't take a file that can't be looked at (%s) for absent", async (code, reason) => {
    const path = join(root, `listed ${code}`);
    await mkdir(path);
    await writeFile(join(path, "config.json"), "{}");
    // What a folder does that may be read but not searched (mode 0444).
    const calls = {
      readdir,
      stat: (asked: string) => (asked === path ? stat(path) : failWith(code)),
    };
    const folder = await openFolder(path, calls);
    const error = `${join(path, "config.json")}: ${reason}`;
    await expect(folder.has("config.json")).rejects.toThrow(error);
  });

  it("says that nothing is where a path leads nowhere, or through a file", async () => {
    await writeFile(join(root, "plain"), "x");
    const folder = await openFolder(root);
    expect(await folder.has("nothing.json")).toBe(false);
    expect(await folder.has("plain/nothing.json")).toBe(false);
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

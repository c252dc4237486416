import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { batchRequestsMax } from "../limits.ts";
import { BatchFile } from "./file-node.ts";
import { lineBytesMax } from "./lines-node.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "deltafold-batch-file-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function fileOf(text: string | Uint8Array): string {
  const path = join(folder, `file-${files++}.jsonl`);
  writeFileSync(path, text);
  return path;
}

const line = (id: string, body: object = {}) =>
  JSON.stringify({ custom_id: id, method: "POST", url: "/v1/completions", body });

async function idsOf(file: BatchFile): Promise<(readonly [number, string])[]> {
  const ids: (readonly [number, string])[] = [];
  for await (const { line, customId } of file.read()) ids.push([line, customId]);
  return ids;
}

test("broken lines are told by their numbers, and the rest is read", async () => {
  const lines = [
    ...[`\ufeff${line("a")}`, "", "nonsense", `${line("b")}\r`, line("a"), "  "],
    ...[line("c", { prompt: "x".repeat(lineBytesMax) }), line("ü€😀")],
  ];
  const bytes = new TextEncoder().encode(lines.join("\n"));
  const broken = new Uint8Array([...bytes, 0x0a, 0xff, 0xfe, 0x0a]);
  const file = await BatchFile.open(fileOf(broken));
  expect(await idsOf(file)).toEqual([
    [1, "a"],
    [4, "b"],
    [8, "ü€😀"],
  ]);
  expect(file.requests).toBe(3);
  expect(file.broken).toEqual([
    { line: 3, message: "it is not valid JSON" },
    { line: 5, message: "its custom_id is that of line 1" },
    { line: 7, message: `it is longer than ${lineBytesMax} bytes, or not UTF-8` },
    { line: 9, message: `it is longer than ${lineBytesMax} bytes, or not UTF-8` },
  ]);
});

test("the same bytes are the same batch", async () => {
  const idOf = async (text: string) => (await BatchFile.open(fileOf(text))).id;
  const id = await idOf(line("a"));
  expect(id).toMatch(/^batch_[0-9a-f]{32}$/);
  expect(await idOf(line("a"))).toBe(id);
  expect(await idOf(`${line("a")}\n`)).not.toBe(id);
});

test("files that hold no batch", async () => {
  const open = (path: string) => BatchFile.open(path);
  await expect(open(join(folder, "absent"))).rejects.toThrow("absent does not exist.");
  await expect(open(folder)).rejects.toThrow("is a folder.");
  await expect(open(fileOf("\n\n"))).rejects.toThrow("holds no request.");
  await expect(open(fileOf("\n{}"))).rejects.toThrow(
    "holds no request. Line 2: custom_id must be a string",
  );
  const lines = Array.from({ length: batchRequestsMax + 1 }, (_, index) => line(`${index}`));
  const large = open(fileOf(lines.join("\n")));
  await expect(large).rejects.toThrow(`has more than ${batchRequestsMax} requests: split it.`);
});

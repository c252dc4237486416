import { expect, test } from "vitest";
import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { CheckpointError } from "../errors.ts";
import { MemoryDirectory } from "./directory.cases.ts";
import { httpFolder } from "./http-folder.ts";
import { fileIn, type Serving, TestServer } from "./server.cases.ts";

const nano = new URL("../../models/nano/", import.meta.url);

const text = (content: string): Serving => ({ bytes: new TextEncoder().encode(content) });

test("finds files of any name, and asks about each once", async () => {
  const files = new Map([["/a b/#1/übung %.json", text("{}")]]);
  await using server = await TestServer.start((path) => files.get(path) ?? null);
  const folder = httpFolder(new URL(`${server.url}/a b/?key=1#part`), null);
  expect(await folder.has("#1/übung %.json")).toBe(true);
  expect(await folder.text("#1/übung %.json")).toBe("{}");
  expect(server.asked).toHaveLength(2);
  expect(await folder.has("absent")).toBe(false);
  await expect(folder.open("absent")).rejects.toThrow(/absent\?key=1.*: does not exist/);
  expect(server.asked).toHaveLength(3);
  await expect(folder.has("../secret")).rejects.toThrow(CheckpointError);
});

test("asks again about a file after the server failed", async () => {
  let status = 503;
  const file = { ...text("{}"), fault: () => (status === 503 ? { status } : {}) };
  await using server = await TestServer.start(() => file);
  const folder = httpFolder(new URL(server.url), null);
  await expect(folder.has("config.json")).rejects.toThrow("status 503");
  status = 200;
  expect(await folder.text("config.json")).toBe("{}");
});

test("opens a checkpoint, and the second time from the cache", async () => {
  await using server = await TestServer.start((path) => fileIn(nano, path.slice(1)));
  const cache = new MemoryDirectory();
  const names = { config: "config.json", model: "model.safetensors" };
  const folder = () => httpFolder(new URL(server.url), cache.handle);
  const load = async () => {
    await using checkpoint = await openCheckpoint(folder());
    const tensor = checkpoint.tensors.get("layers.7.mlp.down_proj.weight")!;
    return await tensor.read(0, tensor.bytes);
  };
  const first = await load();
  const local = await fileIn(nano, names.model);
  expect(Buffer.from(local!.bytes).includes(Buffer.from(first))).toBe(true);
  server.asked.length = 0;
  expect(await load()).toEqual(first);
  // Asked whether they have changed; no more of them came.
  expect(server.asked.map(({ bytes }) => bytes).every((bytes) => bytes <= 2)).toBe(true);
  expect(server.asked.some(({ path }) => path.endsWith(names.model))).toBe(true);
});

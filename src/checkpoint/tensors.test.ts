import { describe, expect, it } from "vitest";
import { type Files, memoryFolder, safetensorsFile } from "./files.cases.ts";
import { openTensors } from "./tensors.ts";

const shard = (...names: string[]) =>
  safetensorsFile(
    names.map((name, i) => ({ name, dtype: "U8", shape: [3], data: Uint8Array.of(i, i, 9) })),
  );

function sharded(weightMap: Record<string, unknown>): Files {
  return new Map<string, Uint8Array | string>([
    ["model-1.safetensors", shard("a", "b")],
    ["model-2.safetensors", shard("c")],
    ["model.safetensors.index.json", JSON.stringify({ weight_map: weightMap })],
  ]);
}

const whole = { a: "model-1.safetensors", b: "model-1.safetensors", c: "model-2.safetensors" };

describe("openTensors", () => {
  it("opens a single file and reads by range within a tensor", async () => {
    const files = await openTensors(
      memoryFolder(new Map([["model.safetensors", shard("a", "b")]])),
    );
    const b = files.tensors.get("b");
    expect(await b?.read(1, 2)).toEqual(Uint8Array.of(1, 9));
    expect(() => b?.read(2, 2)).toThrow(/tensor b is 3 bytes, 2 to 4/);
  });

  it("opens shards, and never a file that the index does not name", async () => {
    const files = sharded(whole);
    files.set("model-9.safetensors", shard("a", "stray"));
    files.set("model.safetensors", shard("stray"));
    const { tensors, headers } = await openTensors(memoryFolder(files));
    expect([...tensors.keys()].sort()).toEqual(["a", "b", "c"]);
    expect(headers.length).toBe(2);
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    [
      "a shard that is missing",
      { ...whole, d: "no.safetensors" },
      /no\.safetensors is missing.* d/,
    ],
    ["a tensor its shard lacks", { ...whole, d: "model-2.safetensors" }, /model-2.*lacks tensor d/],
    [
      "too few of a shard's tensors",
      { a: "model-1.safetensors" },
      /model-1.*holds tensor b, which/,
    ],
    ["a file outside the folder", { a: "../x.safetensors" }, /not a path inside the folder/],
    ["a shard that is no text", { a: 1 }, /weight_map\.a must be a file, found 1/],
  ])("refuses an index that names %s", async (_, weightMap, message) => {
    await expect(openTensors(memoryFolder(sharded(weightMap)))).rejects.toThrow(message);
  });

  it("refuses an index without a map, a broken one, and a folder with no weights", async () => {
    const index = (text: string) =>
      openTensors(memoryFolder(new Map([["model.safetensors.index.json", text]])));
    await expect(index("{}")).rejects.toThrow(/weight_map must be an object, found nothing/);
    await expect(index('{"weight_map":')).rejects.toThrow(/index\.json: is not valid JSON/);
    await expect(index('{"weight_map":{"a":"x","a":"y"}}')).rejects.toThrow(/"a" twice/);
    await expect(openTensors(memoryFolder(new Map()))).rejects.toThrow(/has neither/);
  });
});

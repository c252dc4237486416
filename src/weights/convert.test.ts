import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openCheckpoint } from "../checkpoint/checkpoint.ts";
import { memoryFolder, type RawTensor, tinyConfig } from "../checkpoint/files.cases.ts";
import { openFolder } from "../checkpoint/source-node.ts";
import { openTensors } from "../checkpoint/tensors.ts";
import { InputError } from "../errors.ts";
import { convertInto } from "./convert.ts";
import { convertCheckpoint } from "./convert-node.ts";
import { bf16FromF32, bytesOf, f32FromBf16, widen } from "./floats.ts";
import { weightsFromCheckpoint } from "./from-checkpoint.ts";
import { createOutputFolder, diskCalls } from "./output-node.ts";
import { quantizeGroups } from "./quantize.cases.ts";
import { matrixRoles, vectorRoles } from "./roles.ts";
import { tinyFiles, tinyTensors } from "./tiny.cases.ts";

const models = join(import.meta.dirname, "../../../shared/models");
const format = { bits: 4, groupSize: 64 } as const;
const original = await tinyTensors();

let root = "";
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "deltafold-convert-"));
});
afterEach(() => rm(root, { recursive: true }));

const convert = async (
  tensors: readonly RawTensor[],
  options: Parameters<typeof convertInto>[2],
  config: object = tinyConfig(),
) => {
  const out = join(root, "out put é");
  await convertInto(
    memoryFolder(tinyFiles(tensors, config)),
    await createOutputFolder(out),
    options,
  );
  return openFolder(out);
};

describe("convertInto", () => {
  it.each([
    [4, 64],
    [3, 32],
  ] as const)("makes an MLX-layout model, %i bits in groups of %i", async (bits, groupSize) => {
    const folder = await convert(original, { bits, groupSize });
    await using checkpoint = await openCheckpoint(folder);
    await using source = await openCheckpoint(memoryFolder(tinyFiles(original)));
    expect(checkpoint.layout).toBe("mlx");
    const made = await weightsFromCheckpoint(checkpoint);
    const from = await weightsFromCheckpoint(source);
    for (const { path } of matrixRoles(made.shape)) {
      const [to, dense] = [made.matrix(path), from.matrix(path)];
      if (to.kind !== "affine" || dense.kind !== "dense") throw new Error(path);
      const values = widen(await dense.read(0, dense.rows), dense.dtype);
      const expected = quantizeGroups(values, { bits, groupSize });
      const rows = await to.read(0, to.rows);
      expect(rows.codes).toEqual(expected.codes);
      expect(rows.scales).toEqual(widen(bytesOf(expected.scales), "bf16"));
    }
    for (const { path, kind } of vectorRoles(made.shape)) {
      const values = await from.vector(path);
      const rounded = values.map((value) => f32FromBf16(bf16FromF32(value)));
      expect(await made.vector(path)).toEqual(kind === "centred" ? rounded : values);
    }
    const { tensors, close } = await openTensors(folder);
    const mixer = "language_model.model.layers.0.linear_attn";
    expect(tensors.get(`${mixer}.A_log`)?.dtype).toBe("F32");
    expect(tensors.get(`${mixer}.conv1d.weight`)?.shape).toEqual([128, 4, 1]);
    expect(tensors.has("language_model.lm_head.scales")).toBe(true);
    await close();
  });

  it("keeps the config's form, adds quantisation, and copies the tokenizer", async () => {
    const wrapper = { model_type: "qwen3_5", text_config: tinyConfig(), image_token_id: 500 };
    const folder = await convert(original, format, wrapper);
    const quantization = { group_size: 64, bits: 4, mode: "affine" };
    expect(JSON.parse(await folder.text("config.json"))).toEqual({
      ...wrapper,
      quantization,
      quantization_config: quantization,
    });
    expect(await folder.text("tokenizer.json")).toContain("stands for itself");
    expect((await readdir(folder.name)).sort()).toEqual([
      "config.json",
      "model.safetensors",
      "model.safetensors.index.json",
      "tokenizer.json",
    ]);
  });

  it("cuts shards of a given size, which read as the single file does", async () => {
    const single = await convert(original, format);
    await using one = await openCheckpoint(single);
    const expected = new Map<string, Uint8Array>();
    for (const [name, tensor] of one.tensors)
      expected.set(name, await tensor.read(0, tensor.bytes));
    await rm(single.name, { recursive: true });
    const folder = await convert(original, { ...format, shardBytes: 10_000 });
    const shards = (await readdir(folder.name))
      .sort()
      .filter((name) => name.endsWith("safetensors"));
    expect(shards.length).toBeGreaterThan(2);
    expect(shards[0]).toBe(`model-00001-of-0000${shards.length}.safetensors`);
    await using sharded = await openCheckpoint(folder);
    expect(sharded.tensors.size).toBe(expected.size);
    for (const [name, tensor] of sharded.tensors) {
      expect(await tensor.read(0, tensor.bytes)).toEqual(expected.get(name));
    }
  });

  it("leaves a matrix alone whose columns the group does not divide", async () => {
    const folder = await convert(original, { bits: 4, groupSize: 128 });
    await using checkpoint = await openCheckpoint(folder);
    const weights = await weightsFromCheckpoint(checkpoint);
    expect(weights.matrix("layers.0.mlp.up_proj")).toMatchObject({ kind: "dense", dtype: "bf16" });
    expect(weights.matrix("layers.0.mlp.down_proj")).toMatchObject({ kind: "affine", cols: 128 });
  });

  it("refuses a group that divides nothing, naming it and a column count", async () => {
    const config = {
      ...tinyConfig(),
      intermediate_size: 96,
      head_dim: 24,
      partial_rotary_factor: 0.5,
    };
    const refused = convert(await tinyTensors(config), { bits: 4, groupSize: 128 }, config);
    await expect(refused).rejects.toThrow(/group_size 128 divides .* \(they have 64, 96\)/);
    await expect(refused).rejects.toThrow(InputError);
    expect(await readdir(root)).toEqual([]);
  });

  it("refuses values that are not finite, naming the tensor", async () => {
    const tensors = original.map((tensor) =>
      tensor.name === "lm_head.weight"
        ? { ...tensor, data: new Uint8Array(tensor.data.length).fill(0xff) }
        : tensor,
    );
    await expect(convert(tensors, format)).rejects.toThrow(/lm_head: rows 0 .* infinity or NaN/);
    expect(await readdir(root)).toEqual([]);
  });

  it("quantises a drafter's linear weights and leaves the rest, names and all", async () => {
    const data = (count: number) => new Uint8Array(2 * count).fill(0x3c);
    const tensors = [
      { name: "fc.weight", dtype: "BF16", shape: [4, 64], data: data(256) },
      { name: "odd.weight", dtype: "BF16", shape: [4, 48], data: data(192) },
      { name: "norm.weight", dtype: "BF16", shape: [64], data: data(64) },
      { name: "selector.codebook", dtype: "BF16", shape: [2, 64], data: data(128) },
    ];
    const config = { architectures: ["DFlash2DraftModel"], model_type: "qwen3" };
    const folder = await convert(tensors, format, config);
    const { tensors: made, close } = await openTensors(folder);
    const kinds = [...made.values()].map(({ name, dtype, shape }) => [name, dtype, ...shape]);
    expect(kinds.sort()).toEqual([
      ["fc.biases", "BF16", 4, 1],
      ["fc.scales", "BF16", 4, 1],
      ["fc.weight", "U32", 4, 8],
      ["norm.weight", "BF16", 64],
      ["odd.weight", "BF16", 4, 48],
      ["selector.codebook", "BF16", 2, 64],
    ]);
    expect(await made.get("norm.weight")?.read(0, 128)).toEqual(data(64));
    await close();
    const again = convertCheckpoint(join(root, "out put é"), join(root, "again"), format);
    await expect(again).rejects.toThrow(/is quantised already/);
  });

  it("tells its progress up to the end, and stops at a signal", async () => {
    const seen: number[] = [];
    const controller = new AbortController();
    await convert(original, {
      ...format,
      onProgress: ({ doneBytes, totalBytes }) => seen.push(doneBytes / totalBytes),
    });
    expect(seen.at(-1)).toBe(1);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    await rm(join(root, "out put é"), { recursive: true });
    const stopped = convert(original, {
      ...format,
      signal: controller.signal,
      onProgress: () => controller.abort(),
    });
    await expect(stopped).rejects.toThrow(/abort/);
    expect(await readdir(root)).toEqual([]);
  });
});

describe("the output folder", () => {
  const source = memoryFolder(tinyFiles(original));
  const full = () => Object.assign(new Error("full"), { code: "ENOSPC" });

  it("is left out whole when the disk fills up at any write", async () => {
    let writes = 0;
    const failingAt = (nth: number) =>
      createOutputFolder(join(root, "out"), {
        ...diskCalls,
        async writeAt(handle, bytes, position) {
          writes++;
          if (writes === nth) throw full();
          return await diskCalls.writeAt(handle, bytes, position);
        },
      });
    await convertInto(source, await failingAt(0), format);
    const total = writes;
    expect(total).toBeGreaterThan(30);
    await rm(join(root, "out"), { recursive: true });
    for (const nth of [1, 2, 3, 10, Math.floor(total / 2), total - 2, total - 1, total]) {
      writes = 0;
      const error = await convertInto(source, await failingAt(nth), format).catch(
        (caught) => caught,
      );
      expect(error.code).toBe("write_failed");
      expect(error.message).toMatch(/out.*: can't be written: no space is left on the disk/);
      expect(await readdir(root)).toEqual([]);
    }
  });

  it("is removed, and the first error told, when files can't be closed either", async () => {
    const failing = await createOutputFolder(join(root, "out"), {
      ...diskCalls,
      async writeAt(handle) {
        const close = handle.close.bind(handle);
        handle.close = async () => {
          await close();
          throw new Error("not closed");
        };
        throw full();
      },
    });
    await expect(convertInto(source, failing, format)).rejects.toThrow("no space is left");
    expect(await readdir(root)).toEqual([]);
  });

  it("tells the first error when the removal fails too", async () => {
    const output = await createOutputFolder(join(root, "out"), {
      ...diskCalls,
      async writeAt() {
        throw full();
      },
    });
    const abort = async () => {
      await output.abort();
      throw new Error("not removed");
    };
    const converted = convertInto(source, { ...output, abort }, format);
    await expect(converted).rejects.toThrow("no space is left");
  });

  it("is written whole when the disk takes a few bytes at a time", async () => {
    const slow = await createOutputFolder(join(root, "slow"), {
      ...diskCalls,
      writeAt: (handle, bytes, position) =>
        diskCalls.writeAt(handle, bytes.subarray(0, 1000), position),
    });
    await convertInto(source, slow, format);
    await convertInto(source, await createOutputFolder(join(root, "fast")), format);
    for (const file of await readdir(join(root, "fast"))) {
      const [a, b] = [join(root, "slow", file), join(root, "fast", file)];
      expect(Buffer.compare(await readFile(a), await readFile(b))).toBe(0);
    }
  });

  it("is refused when it exists, and when its parent does not", async () => {
    await mkdir(join(root, "there"));
    await expect(createOutputFolder(join(root, "there"))).rejects.toThrow(/there exists already/);
    await expect(createOutputFolder(join(root, "no/out"))).rejects.toThrow(/no: can't be written/);
    const late = await createOutputFolder(join(root, "late"));
    await writeFile(join(root, "late"), "someone else's");
    await expect(convertInto(source, late, format)).rejects.toThrow(/late has appeared meanwhile/);
    expect((await readdir(root)).sort()).toEqual(["late", "there"]);
  });
});

describe.skipIf(!existsSync(models))("with the originals in ../shared/models", () => {
  it.each(["nano", "nano-dflash2"])("models/%s is what the converter makes", async (name) => {
    const made = join(root, name);
    await convertCheckpoint(join(models, name), made, format);
    const shipped = join(import.meta.dirname, "../../models", name);
    expect(await readdir(made)).toEqual(await readdir(shipped));
    for (const file of await readdir(made)) {
      const [a, b] = [await readFile(join(made, file)), await readFile(join(shipped, file))];
      expect(Buffer.compare(a, b), file).toBe(0);
    }
  });
});

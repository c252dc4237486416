import { existsSync } from "node:fs";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openCheckpoint } from "./checkpoint.ts";
import { memoryFolder, safetensorsFile, tinyConfig } from "./files.cases.ts";
import { bareName } from "./names.ts";
import { openFolder } from "./source-node.ts";

const golden = join(import.meta.dirname, "../../../shared/golden");
const conv = "layers.0.linear_attn.conv1d.weight";

/** A folder with nothing but the tensors named, each one byte a value. */
function folder(tensors: Record<string, number[]>, config: object = tinyConfig()) {
  const file = safetensorsFile(
    Object.entries(tensors).map(([name, shape]) => {
      const bytes = shape.reduce((product, size) => product * size, 1);
      return { name, dtype: "U8", shape, data: new Uint8Array(bytes) };
    }),
  );
  const files = new Map<string, Uint8Array | string>([["model.safetensors", file]]);
  files.set("config.json", JSON.stringify(config));
  return memoryFolder(files);
}

describe("openCheckpoint", () => {
  it.each([
    ["model.", [128, 1, 4], "hf"],
    ["model.language_model.", [128, 1, 4], "hf"],
    ["language_model.model.", [128, 4, 1], "mlx"],
  ] as const)(
    "finds prefix %s and the layout by the convolution alone",
    async (prefix, shape, layout) => {
      const names = { [prefix + conv]: [...shape], "mtp.norm.weight": [4], "visual.x": [1] };
      await using checkpoint = await openCheckpoint(folder(names));
      expect(checkpoint.layout).toBe(layout);
      expect([...checkpoint.tensors.keys()]).toEqual([conv]);
    },
  );

  it("counts a model without linear layers as Hugging Face's", async () => {
    const config = { ...tinyConfig(), layer_types: ["full_attention", "full_attention"] };
    expect((await openCheckpoint(folder({}, config))).layout).toBe("hf");
  });

  it("refuses a convolution of any other shape, and its absence", async () => {
    const odd = openCheckpoint(folder({ [`model.${conv}`]: [128, 4] }));
    await expect(odd).rejects.toThrow(/conv1d\.weight is \[128,4\], expected \[channels, 1, 4\]/);
    await expect(openCheckpoint(folder({}))).rejects.toThrow(/has no tensor .*conv1d\.weight/);
  });

  it("refuses two tensors for one place", async () => {
    const names = { [`model.${conv}`]: [128, 1, 4], [`language_model.model.${conv}`]: [128, 4, 1] };
    await expect(openCheckpoint(folder(names))).rejects.toThrow(/are the same part of the model/);
  });

  it.skipIf(!existsSync(golden))("opens the tiny wrapper of ../shared/golden", async () => {
    const path = await mkdtemp(join(tmpdir(), "deltafold モデル　é "));
    try {
      await copyFile(join(golden, "tiny_wrapper.safetensors"), join(path, "model.safetensors"));
      await copyFile(join(golden, "tiny_wrapper_config.json"), join(path, "config.json"));
      await using checkpoint = await openCheckpoint(await openFolder(path));
      expect(checkpoint.layout).toBe("hf");
      expect(checkpoint.config).toMatchObject({ modelType: "qwen3_5", eosIds: [511] });
      expect(checkpoint.config.shape).toMatchObject({
        layerTypes: ["linear", "linear", "linear", "full"],
        headDim: 256,
        rotaryDim: 64,
        ropeTheta: 1e7,
        tiedHead: false,
      });
      expect(checkpoint.tensors.size).toBe(56);
      expect(checkpoint.tensors.get("lm_head.weight")?.shape).toEqual([512, 256]);
    } finally {
      await rm(path, { recursive: true });
    }
  });
});

describe("bareName", () => {
  it.each([
    ["language_model.lm_head.weight", "lm_head.weight"],
    ["lm_head.scales", "lm_head.scales"],
    ["model.norm.weight", "norm.weight"],
    ["model.language_model.norm.weight", "norm.weight"],
    ["model.visual.blocks.0.x", null],
    ["model.language_model.visual.x", null],
    ["vision_tower.x", null],
    ["language_model.mtp.fc.weight", null],
    ["something.else", null],
  ])("%s is %s", (name, bare) => {
    expect(bareName(name)).toBe(bare);
  });
});

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { BackendOptions } from "./backend/backend.ts";
import { FakeBackend } from "./backend/fake/fake.ts";
import { openFolder } from "./checkpoint/source-node.ts";
import type { CostStore } from "./draft/cost-store.ts";
import { CheckpointError, InputError, MemoryError } from "./errors.ts";
import { drafterPlace, modelFolder, openEngine } from "./node.ts";
import { type ModelOptions, openModel } from "./open-model.ts";

/** A folder of copies of nano and its drafter, named as `auto` looks for them. */
function copies(change: (drafter: string) => void = () => {}): { model: string; drafter: string } {
  const folder = mkdtempSync(join(tmpdir(), "deltafold-drafter-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [model, drafter] = [join(folder, "small"), join(folder, "small-dflash2")];
  cpSync(modelFolder("nano"), model, { recursive: true });
  cpSync(modelFolder("nano-dflash2"), drafter, { recursive: true });
  change(drafter);
  return { model, drafter };
}

const withConfig = (changes: object) => (drafter: string) => {
  const file = join(drafter, "config.json");
  const config = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...config, ...changes }));
};

/** An engine on a fake backend, what it warned of, and how its backend was opened. */
async function open(
  model: string,
  drafter: string,
  options: ModelOptions = {},
  costs: CostStore | null = null,
  check: (sizes: BackendOptions) => void = () => {},
) {
  const warnings: string[] = [];
  const opened: BackendOptions[] = [];
  const parts = {
    folder: await openFolder(model),
    model: "small",
    drafter: drafterPlace(model, drafter),
    costs,
    spill: null,
    promptCacheBytes: 0,
    openBackend: async (sizes: BackendOptions) => {
      check(sizes);
      opened.push(sizes);
      return new FakeBackend({ ...sizes, shape: sizes.weights.shape });
    },
  };
  const onWarning = (message: string) => warnings.push(message);
  const engine = await openModel(parts, { contextTokens: 256, ...options, onWarning });
  onTestFinished(() => engine[Symbol.asyncDispose]());
  const reply = await engine.complete({ prompt: "one two one two one two", maxTokens: 30 }).result;
  return { engine, warnings, options: opened[0]!, reply };
}

test("auto finds the drafter beside the model, and replies are those without it", async () => {
  const { model } = copies();
  const auto = await open(model, "auto");
  expect(auto.warnings).toEqual([]);
  expect(auto.engine.info.backend.drafter?.kind).toBe("dflash2");
  expect(auto.options).toMatchObject({ slots: 8, drawsMax: 128, drafter: { vocabulary: 8185 } });
  const none = await open(model, "none");
  expect(none.engine.info.backend.drafter).toBeNull();
  const serial = await open(model, "auto", { drafts: false });
  expect(serial.options).toMatchObject({ drawsMax: 8, drafter: null });
  expect(serial.reply.speculative).toMatchObject({ rounds: 29, drafted: 0 });
  expect(none.reply.ids).toEqual(auto.reply.ids);
  expect(serial.reply.ids).toEqual(auto.reply.ids);
});

test("a model without a drafter beside it copies", async () => {
  const { model, drafter } = copies();
  rmSync(drafter, { recursive: true });
  const { engine, warnings } = await open(model, "auto");
  expect(engine.info.backend.drafter).toBeNull();
  expect(warnings).toEqual([]);
});

test("the drafter's vocabulary may be narrower", async () => {
  const { model } = copies();
  const { options } = await open(model, "auto", { draftVocabulary: 500 });
  expect(options.drafter?.vocabulary).toBe(500);
  const wider = await open(model, "auto", { draftVocabulary: 1e6 });
  expect(wider.options.drafter?.vocabulary).toBe(8185);
});

test.each([
  [{ draftVocabulary: 0 }, /draftVocabulary must be a whole number from 1 to \d+, not 0\./],
  [{ draftTree: 16 }, /draftTree must be a whole number from 1 to 15, not 16\./],
  [{ draftTree: Number.NaN }, /draftTree .* not NaN\./],
  [{ drafterBits: 3 as 4 }, /drafterBits must be 0 or 4 or 8, not 3\./],
])("%j is refused", async (options, why) => {
  await expect(open(modelFolder("nano"), "none", options)).rejects.toThrow(why);
});

const broken: readonly (readonly [string, (drafter: string) => void, RegExp])[] = [
  ["of another hidden size", withConfig({ hidden_size: 512 }), /hidden_size 512/],
  ["of another vocabulary", withConfig({ vocab_size: 9000 }), /vocab_size 9000/],
  [
    "that reads layers which aren't there",
    withConfig({
      num_target_layers: null,
      dflash_config: {
        mask_token_id: 8185,
        target_layer_ids: [1, 3, 60],
        block_size: 8,
        conv_kernel_size: 2,
        conv_group_size: 16,
        selector_rank: 64,
        selector_top_k: 16,
      },
    }),
    /target_layer_ids up to 60/,
  ],
  [
    "that is a model",
    (drafter) => cpSync(modelFolder("nano"), drafter, { recursive: true }),
    /is a model/,
  ],
  ["without its tensors", (drafter) => rmSync(join(drafter, "model.safetensors")), /safetensors/],
  [
    "that is a file",
    (drafter) => {
      rmSync(drafter, { recursive: true });
      writeFileSync(drafter, "");
    },
    /is not a folder/,
  ],
];

test.each(broken)("a drafter %s is refused where it was asked for", async (_, change, why) => {
  const { model, drafter } = copies(change);
  await expect(open(model, drafter)).rejects.toThrow(CheckpointError);
  await expect(open(model, drafter)).rejects.toThrow(why);
});

test.each(broken)("beside the model, one %s is a warning", async (_, change, why) => {
  const { model } = copies(change);
  const { engine, warnings, reply } = await open(model, "auto");
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(why);
  expect(engine.info.backend.drafter).toBeNull();
  expect(reply.finishReason).toBe("length");
});

test("a drafter is no model", async () => {
  await expect(openEngine("nano-dflash2")).rejects.toThrow(/drafter/);
});

test("costs are measured once, and kept", async () => {
  const { model } = copies();
  const kept = new Map<string, string>();
  const store: CostStore = {
    build: "this one",
    read: async (identity) => kept.get(JSON.stringify(identity)) ?? null,
    write: async (identity, text) => {
      kept.set(JSON.stringify(identity), text);
    },
  };
  await open(model, "auto", {}, store);
  const [first] = kept.values();
  expect(JSON.parse(first!)).toMatchObject({ build: "this one", verify: expect.any(Array) });
  await open(model, "auto", {}, store);
  expect([...kept.values()]).toEqual([first]);
  await open(model, "none", {}, store);
  expect(kept.size).toBe(2);
  await open(model, "auto", { drafts: false }, store);
  expect(kept.size).toBe(2);
});

test("a drafter that was found and doesn't fit is left out, and one that was asked for is an error", async () => {
  const { model, drafter } = copies();
  const full = (options: BackendOptions) => {
    if (options.drafter) throw new MemoryError(2, 1, "It needs less.");
  };
  const { warnings, engine, reply } = await open(model, "auto", {}, null, full);
  expect(warnings).toEqual([expect.stringMatching(/Nothing is drafted by a model.*MiB are free/)]);
  expect(engine.info.backend.drafter).toBeNull();
  expect(reply.finishReason).toBe("length");
  await expect(open(model, drafter, {}, null, full)).rejects.toThrow(MemoryError);
});

test("a quantised model finds the drafter of the model itself", () => {
  const { model } = copies();
  expect(drafterPlace(`${model}-4bit`, "auto")).not.toBeNull();
  expect(drafterPlace(`${model}-MLX-8bit`, "auto")).not.toBeNull();
  expect(drafterPlace(`${model}-4bits`, "auto")).toBeNull();
});

test("a drafter must be let propose as many tokens as it chooses among", async () => {
  const { model } = copies();
  await expect(open(model, "auto", { draftVocabulary: 15 })).rejects.toThrow(InputError);
});

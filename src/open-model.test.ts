import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { BackendOptions } from "./backend/backend.ts";
import { FakeBackend } from "./backend/fake/fake.ts";
import { openFolder } from "./checkpoint/source-node.ts";
import { BackendLostError, InputError } from "./errors.ts";
import { modelFolder, openEngine } from "./node.ts";
import { checkPrecision, type ModelOptions, openModel } from "./open-model.ts";

/** An engine over a copy of nano, and what its backends were opened with. */
async function engineOfCopy(
  change: (folder: string) => void = () => {},
  options: ModelOptions = {},
) {
  const folder = mkdtempSync(join(tmpdir(), "deltafold-open-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(modelFolder("nano"), folder, { recursive: true });
  change(folder);
  const opened: BackendOptions[] = [];
  const backends: FakeBackend[] = [];
  const parts = {
    folder: await openFolder(folder),
    model: "nano",
    drafter: null,
    costs: null,
    spill: null,
    promptCacheBytes: 2 ** 20,
    openBackend: async (options: BackendOptions) => {
      opened.push(options);
      const backend = new FakeBackend({ ...options, shape: options.weights.shape });
      backends.push(backend);
      return backend;
    },
  };
  const engine = await openModel(parts, {
    ...{ parallel: 2, contextTokens: 256, onProgress: () => {} },
    ...options,
  });
  const ask = async () =>
    (await engine.complete({ prompt: "one two", maxTokens: 4, temperature: 0 }).result).ids;
  return { folder, engine, opened, backends, ask };
}

test("a recommended repetition penalty holds unless a request says otherwise", async () => {
  await using plain = (await engineOfCopy()).engine;
  const { engine } = await engineOfCopy((folder) => {
    // So far below 1 that no other token comes near those that were seen.
    const generation = { temperature: 0, repetition_penalty: 1e-6 };
    writeFileSync(join(folder, "generation_config.json"), JSON.stringify(generation));
  });
  await using recommended = engine;
  const request = { prompt: "one two three", temperature: 0, maxTokens: 20, ignoreEos: true };
  const seen = new Set(engine.tokenize(request.prompt));
  const { ids } = await recommended.complete(request).result;
  expect(ids.filter((id) => !seen.has(id))).toEqual([]);
  const off = await recommended.complete({ ...request, repetition_penalty: 1 }).result;
  expect(off.ids).toEqual((await plain.complete(request).result).ids);
  expect(off.ids).not.toEqual(ids);
});

test("an identity names the text files and the defaults, and is told to who asks", async () => {
  const identityOf = async (change: (folder: string) => void, options: ModelOptions) => {
    const { engine } = await engineOfCopy(change, options);
    await using asked = engine;
    return asked.info.identity;
  };
  const asIs = () => {};
  const identity = await identityOf(asIs, { identify: true });
  expect(identity).toEqual({
    weights: expect.stringMatching(/^[0-9a-f]{16}$/),
    probe: expect.stringMatching(/^[0-9a-f]{16}$/),
  });
  // How many are served at once, and how much context they have, changes no reply.
  const wider = { identify: true, parallel: 3, contextTokens: 512 };
  expect(await identityOf(asIs, wider)).toEqual(identity);
  const hotter = { identify: true, sampling: { temperature: 0.5 } };
  const otherTemplate = (folder: string) =>
    appendFileSync(join(folder, "chat_template.jinja"), "{# changed #}");
  const others = [
    await identityOf(asIs, hotter),
    await identityOf(asIs, { identify: true, thinking: true }),
    await identityOf(asIs, { identify: true, maxTokens: 7 }),
    await identityOf(otherTemplate, { identify: true }),
  ];
  const names = [identity, ...others].map((each) => each?.weights);
  expect(new Set(names).size).toBe(names.length);
  expect(await identityOf(asIs, {})).toBeNull();
});

test("only what the tokenizer knows is ever drawn", async () => {
  const { engine, opened, backends, ask } = await engineOfCopy();
  await using _ = engine;
  const { weights } = opened[0]!;
  expect(weights.shape.vocabSize).toBe(8185);
  expect(weights.matrix("embed_tokens").rows).toBe(8192);
  backends[0]!.lose();
  await ask();
  expect(opened[1]!.weights.shape.vocabSize).toBe(8185);
});

test("a lost backend is opened again, of the same sizes and with weights that can be read", async () => {
  const { engine, opened, backends, ask } = await engineOfCopy();
  const right = await ask();
  backends[0]!.lose();
  expect(await ask()).toEqual(right);
  expect(opened).toHaveLength(2);
  const { onProgress, ...first } = opened[0]!;
  expect(onProgress).toBeDefined();
  expect(opened[1]).toEqual({ ...first, weights: expect.anything() });
  expect(opened[1]!.weights).not.toBe(opened[0]!.weights);
  await engine[Symbol.asyncDispose]();
});

test.each<[string, (folder: string) => void]>([
  [
    "another model",
    (folder) => {
      const file = join(folder, "config.json");
      const config = JSON.parse(readFileSync(file, "utf8"));
      writeFileSync(file, JSON.stringify({ ...config, rms_norm_eps: 1e-5 }));
    },
  ],
  [
    "other weights of the same shape",
    (folder) => {
      const file = join(folder, "model.safetensors");
      const bytes = readFileSync(file);
      // Behind the header's length and the header.
      bytes[8 + Number(bytes.readBigUInt64LE())]! ^= 1;
      writeFileSync(file, bytes);
    },
  ],
])("a folder that holds %s by then is refused", async (_, change) => {
  const { folder, engine, opened, backends, ask } = await engineOfCopy();
  await ask();
  change(folder);
  backends[0]!.lose();
  const asked = ask();
  await expect(asked).rejects.toThrow(BackendLostError);
  await expect(asked).rejects.toThrow(/another model than the one that was loaded/);
  expect(opened).toHaveLength(1);
  await engine[Symbol.asyncDispose]();
});

test.each([
  ["wasm", { activations: "f16" }, "activations f16 goes with the backend webgpu, not with wasm."],
  ["reference", { activations: "f16" }, "activations f16 goes"],
  ["webgpu", { activations: "int8" }, "activations int8 goes with the backend wasm, not"],
  ["reference", { activations: "int8" }, "activations int8 goes"],
  ["wasm", { kv: "f16" }, "kv f16 goes with the backend webgpu"],
  ["reference", { kv: "f16" }, "kv f16 goes"],
] as const)("%s refuses %o", async (backend, precision, message) => {
  const asked = openEngine("nano", { backend, ...precision });
  await expect(asked).rejects.toThrow(InputError);
  await expect(asked).rejects.toThrow(message);
});

test("a backend has its own precisions, and auto those of all", () => {
  checkPrecision("webgpu", { activations: "f16", kv: "f16" });
  checkPrecision("wasm", { activations: "int8", kv: "f32" });
  checkPrecision("auto", { activations: "f32", kv: "f32" });
  checkPrecision("auto", {});
  expect(() => checkPrecision("auto", { activations: "int8" })).toThrow("not with auto");
  expect(() => checkPrecision("auto", { kv: "f16" })).toThrow("not with auto");
});

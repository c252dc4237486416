import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openFolder } from "../../checkpoint/source-node.ts";
import { openTensors } from "../../checkpoint/tensors.ts";
import { openTokenizer } from "../../open-text.ts";
import { ggufFile, ggufTensors, metadataOf } from "../../weights/gguf/files.cases.ts";
import { runLine } from "../io.cases.ts";

const originals = join(import.meta.dirname, "../../../../shared/models/nano");
const nano = join(import.meta.dirname, "../../../models/nano");

let root = "";
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "deltafold-cli-gguf-"));
});
afterAll(() => rm(root, { recursive: true }));

/** The vocabulary of a tokenizer.json, padded to `rows` as llama.cpp's converter does. */
function vocabularyOf(tokenizerJson: string, rows: number) {
  const { model, added_tokens } = JSON.parse(tokenizerJson);
  const texts = Array.from({ length: rows }, (_, id) => `[PAD${id}]`);
  const kinds = texts.map(() => 5);
  for (const [text, id] of Object.entries<number>(model.vocab)) {
    texts[id] = text;
    kinds[id] = 1;
  }
  for (const { id, content, special } of added_tokens) {
    texts[id] = content;
    kinds[id] = special ? 3 : 4;
  }
  const merges: string[] = model.merges.map((pair: readonly string[]) => pair.join(" "));
  return { tokens: { texts, kinds }, merges };
}

/** Nano as a GGUF file of bf16, with its tokenizer and template. */
async function nanoGguf(): Promise<Uint8Array> {
  const files = await openTensors(await openFolder(originals));
  const tensors = [];
  for (const { name, dtype, shape, bytes, read } of files.tensors.values()) {
    tensors.push({ name, dtype, shape, data: await read(0, bytes) });
  }
  await files.close();
  const text = (name: string) => readFile(join(originals, name), "utf8");
  const config = JSON.parse(await text("config.json"));
  const { tokens, merges } = vocabularyOf(await text("tokenizer.json"), config.vocab_size);
  const metadata = metadataOf(config, tokens, merges)
    .set("tokenizer.chat_template", { text: await text("chat_template.jinja") })
    .set("tokenizer.ggml.eos_token_id", { u32: tokens.texts.indexOf("<|im_end|>") });
  return ggufFile(
    metadata,
    ggufTensors(tensors, config, ({ data }) => ({ type: 30, data })),
  );
}

describe.skipIf(!existsSync(originals))("convert of a GGUF file", () => {
  it("makes a model that reads and answers as the one from the originals does", async () => {
    const [file, output] = [join(root, "nano.gguf"), join(root, "nano")];
    await writeFile(file, await nanoGguf());
    expect(await runLine(["convert", file, output, "--quiet"])).toMatchObject({
      code: 0,
      stderr: "",
    });
    const own = await openTokenizer(await openFolder(output), 8192);
    const theirs = await openTokenizer(await openFolder(nano), 8192);
    const text = await readFile(join(originals, "chat_template.jinja"), "utf8");
    for (const sample of [text, "<|im_start|>user\nÀ 12 ﬁ<think> <|endoftext|>"]) {
      expect(own.encode(sample)).toEqual(theirs.encode(sample));
    }
    expect(own.vocabSize).toBe(theirs.vocabSize);
    const ids = Array.from({ length: theirs.vocabSize }, (_, id) => id);
    expect(ids.map((id) => own.isSpecial(id))).toEqual(ids.map((id) => theirs.isSpecial(id)));
    const line = ["-p", "Count to five.", "--max-tokens", "8", "--temperature", "0", "--json"];
    const answer = async (model: string) => {
      const { stdout } = await runLine(["run", model, ...line, "--backend", "wasm"]);
      return JSON.parse(stdout).text;
    };
    expect(await answer(output)).toBe(await answer(nano));
  });
});

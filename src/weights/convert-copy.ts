import type { Folder } from "../checkpoint/source.ts";
import type { OutputFolder } from "./output.ts";

/** What a model needs beside its weights and config, and its licence. */
const companions: readonly string[] = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "chat_template.jinja",
  "chat_template.json",
  "generation_config.json",
  "LICENSE",
];
const blockBytes = 2 ** 20;

/** Copies tokenizer, chat template and generation defaults, as far as the source has them. */
export async function copyFiles(source: Folder, output: OutputFolder): Promise<void> {
  for (const path of companions) {
    if (await source.has(path)) await copyFile(source, output, path);
  }
}

async function copyFile(source: Folder, output: OutputFolder, path: string): Promise<void> {
  const from = await source.open(path);
  try {
    const to = await output.create(path);
    for (let offset = 0; offset < from.size; offset += blockBytes) {
      const bytes = await from.read(offset, Math.min(blockBytes, from.size - offset));
      await to.write(offset, bytes);
    }
    await to.close();
  } finally {
    await from.close();
  }
}

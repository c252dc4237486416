/** Names what an engine's replies depend on, so that others can be compared with it. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { Backend } from "./backend/backend.ts";
import type { Folder } from "./checkpoint/source.ts";
import type { EngineIdentity } from "./engine.ts";
import { numericsProbe } from "./state/numerics-probe.ts";
import type { Weights } from "./weights/weights.ts";

/** What of a checkpoint, beside its weights, makes a prompt and ends a reply. */
const textFiles = [
  "tokenizer.json",
  "tokenizer_config.json",
  "chat_template.jinja",
  "config.json",
  "generation_config.json",
];

/**
 * The backend must serve nobody yet: it computes a short prompt.
 * @param settings go to JSON: what holds where a request doesn't say
 * @throws CheckpointError, and what a pass throws
 */
export async function openIdentity(
  folder: Folder,
  { fingerprint }: Weights,
  backend: Backend,
  settings: readonly unknown[],
): Promise<EngineIdentity> {
  const hash = sha256.create();
  hash.update(utf8ToBytes(JSON.stringify([fingerprint, settings])));
  for (const file of textFiles) {
    const text = (await folder.has(file)) ? await folder.text(file) : null;
    hash.update(utf8ToBytes(JSON.stringify([file, text])));
  }
  const weights = bytesToHex(hash.digest()).slice(0, 16);
  return { weights, probe: await numericsProbe(backend) };
}

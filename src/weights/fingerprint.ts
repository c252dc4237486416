import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { StoredTensor, TensorFiles } from "../checkpoint/tensors.ts";

/** Bytes of each tensor's start that the fingerprint covers. */
const sampleBytes = 256;

/**
 * SHA-256 over what the tensors mean, each weight file's header and size, and the first 256 bytes of
 * each tensor in use. Two fine-tunes of one model have equal headers, so samples are needed; a change
 * elsewhere in a tensor goes unnoticed.
 *
 * @param meaning goes to JSON: the shape, and how the tensors are laid out
 */
export async function weightsFingerprint(
  meaning: readonly unknown[],
  headers: TensorFiles["headers"],
  used: Iterable<StoredTensor>,
): Promise<string> {
  const hash = sha256.create();
  hash.update(utf8ToBytes(JSON.stringify(meaning)));
  for (const { raw, fileBytes } of headers) {
    hash.update(raw).update(utf8ToBytes(String(fileBytes)));
  }
  for (const tensor of used) {
    hash.update(await tensor.read(0, Math.min(tensor.bytes, sampleBytes)));
  }
  return bytesToHex(hash.digest());
}

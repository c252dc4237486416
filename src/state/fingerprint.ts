import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { Snapshot } from "../backend/backend.ts";

/**
 * SHA-256 over a slot's position, states, conv histories, visible keys and values, and the logits that
 * its next token is drawn from: two streams with one fingerprint are the same stream.
 */
export function stateFingerprint(snapshot: Snapshot): string {
  const { state, history, keys, values, logits } = snapshot;
  const hash = sha256.create();
  const parts = [state, history, keys, values, logits ?? new Float32Array(0)];
  hash.update(new Uint8Array(Float64Array.of(snapshot.rows).buffer));
  for (const part of parts) {
    hash.update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  }
  return bytesToHex(hash.digest());
}

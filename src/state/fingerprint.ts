import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { Snapshot } from "../backend/backend.ts";

/**
 * SHA-256 over a slot's position, states, conv histories, visible keys and values, and the logits that
 * its next token is drawn from: two streams with one fingerprint are the same stream. A drafter's context
 * is no part of it: it follows from the tokens, and a reply is the same without it.
 */
export function stateFingerprint(snapshot: Snapshot): string {
  const { state, history, keys, values, logits } = snapshot;
  return printOf(snapshot.rows, [state, history, keys, values, logits ?? new Float32Array(0)]);
}

/** SHA-256 over what the drafter was given of a stream: speed depends on it, and no token. */
export function contextFingerprint({ rows, draftKeys, draftValues }: Snapshot): string {
  return printOf(rows, [draftKeys, draftValues]);
}

function printOf(rows: number, parts: readonly Float32Array[]): string {
  const hash = sha256.create();
  hash.update(new Uint8Array(Float64Array.of(rows).buffer));
  for (const part of parts) {
    hash.update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  }
  return bytesToHex(hash.digest());
}

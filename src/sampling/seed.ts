import { sha256 } from "@noble/hashes/sha2.js";
import type { TokenId } from "../ids.ts";

function idsDigest(ids: readonly TokenId[], suffix: string): Uint8Array {
  return sha256(new TextEncoder().encode(ids.join(",") + suffix));
}

/**
 * The seed of a request that names none: the same conversation draws the same reply. The low 63
 * bits of the first 8 little-endian bytes of SHA-256 over the prompt's decimal ids joined by
 * commas, then `|` and the salt (0 unless set, and written even then, as the reference system's).
 */
export function promptSeed(promptIds: readonly TokenId[], salt = 0): bigint {
  const digest = idsDigest(promptIds, `|${salt}`);
  const word = new DataView(digest.buffer, digest.byteOffset).getBigUint64(0, true);
  return BigInt.asUintN(63, word);
}

/** First 12 hex digits of SHA-256 over the reply's decimal ids joined by commas. */
export function tokenSha(ids: readonly TokenId[]): string {
  const first = idsDigest(ids, "").subarray(0, 6);
  return Array.from(first, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

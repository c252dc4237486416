import type { AffineBits } from "./weights.ts";

/**
 * The codes of one little-endian bit stream, one a byte: code i takes bits
 * `bits·i … bits·i + bits − 1`, bit 0 being the lowest of byte 0 (`docs/formats.md`).
 *
 * @param bytes of whole codes: `bytes.length · 8` is a multiple of `bits`
 */
export function unpackCodes(bytes: Uint8Array, bits: AffineBits): Uint8Array {
  const codes = new Uint8Array((bytes.length * 8) / bits);
  const mask = (1 << bits) - 1;
  let held = 0;
  let heldBits = 0;
  let out = 0;
  for (const byte of bytes) {
    held |= byte << heldBits;
    heldBits += 8;
    while (heldBits >= bits) {
      codes[out++] = held & mask;
      held >>>= bits;
      heldBits -= bits;
    }
  }
  return codes;
}

import type { AffineBits } from "./weights.ts";

/**
 * Packs codes into one little-endian bit stream: code i takes bits `bits·i … bits·i + bits − 1`,
 * bit 0 being the lowest of byte 0 (`docs/formats.md`).
 *
 * @param codes one a byte, each < 2^bits; `codes.length · bits` is a multiple of 8
 */
export function packCodes(codes: Uint8Array, bits: AffineBits): Uint8Array {
  const bytes = new Uint8Array((codes.length * bits) / 8);
  let held = 0;
  let heldBits = 0;
  let out = 0;
  for (const code of codes) {
    held |= code << heldBits;
    heldBits += bits;
    while (heldBits >= 8) {
      bytes[out++] = held & 0xff;
      held >>>= 8;
      heldBits -= 8;
    }
  }
  return bytes;
}

/** The inverse of `packCodes`: one code a byte. */
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

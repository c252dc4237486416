import type { AffineBits } from "./weights.ts";

/**
 * The codes of one little-endian bit stream, one a byte: code i takes bits
 * `bits·i … bits·i + bits − 1`, bit 0 being the lowest of byte 0 (`docs/formats.md`).
 *
 * @param bytes of whole codes: `bytes.length · 8` is a multiple of `bits`
 */
export function unpackCodes(bytes: Uint8Array, bits: AffineBits): Uint8Array {
  // Most weights are of these widths, and a loop for all widths takes nine times as long.
  if (bits === 8) return bytes.slice();
  if (bits === 4) return unpackNibbles(bytes);
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

function unpackNibbles(bytes: Uint8Array): Uint8Array {
  const codes = new Uint8Array(2 * bytes.length);
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    codes[2 * at] = byte & 0xf;
    codes[2 * at + 1] = byte >>> 4;
  }
  return codes;
}

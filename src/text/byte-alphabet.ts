/**
 * The letters that byte-level BPE vocabularies write for bytes: printable Latin-1 stands for
 * itself, and the other 68 bytes take U+0100 onwards in order (GPT-2's table).
 */
function buildAlphabet(): Map<string, number> {
  const alphabet = new Map<string, number>();
  let spare = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const ascii = byte >= 0x21 && byte <= 0x7e;
    const printable = ascii || (byte >= 0xa1 && byte !== 0xad);
    alphabet.set(String.fromCharCode(printable ? byte : spare++), byte);
  }
  return alphabet;
}

/** Letter → byte, 256 entries. */
export const byteAlphabet: ReadonlyMap<string, number> = buildAlphabet();

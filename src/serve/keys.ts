import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { InputError } from "../errors.ts";
import { keyCharactersMax, keysMax } from "../limits.ts";

/** A key that lets requests in, and what logs call it. */
export interface NamedKey {
  readonly label: string;
  readonly key: string;
}

/** A key that was let in. */
export interface KnownKey {
  readonly label: string;
  /** SHA-256 in hex, which no other key has: several may have one label. It is in no log. */
  readonly digest: string;
}

interface Digest {
  readonly label: string;
  readonly bytes: Uint8Array;
}

const keyPattern = new RegExp(`^[\\x21-\\x7e]{1,${keyCharactersMax}}$`);

/** The keys of a server. It keeps their SHA-256 digests alone. */
export class ApiKeys {
  #digests: readonly Digest[] = [];

  /** @throws InputError for one that no header could bring */
  constructor(keys: readonly NamedKey[]) {
    this.replace(keys);
  }

  /**
   * From now on these alone are let in.
   * @throws InputError as the constructor does; then nothing has changed
   */
  replace(keys: readonly NamedKey[]): void {
    if (keys.length > keysMax) {
      throw new InputError(`There may be at most ${keysMax} API keys, not ${keys.length}.`);
    }
    for (const { label, key } of keys) checkKey(label, key);
    this.#digests = keys.map(({ label, key }) => ({ label, bytes: digestOf(key) }));
  }

  /**
   * Which key this is; null where it is none. Takes as long whichever it is, and wherever a wrong one
   * differs.
   */
  find(key: string): KnownKey | null {
    if (key.length > keyCharactersMax) return null;
    const given = digestOf(key);
    let found: string | null = null;
    for (const { label, bytes } of this.#digests) if (sameBytes(bytes, given)) found ??= label;
    return found === null ? null : { label: found, digest: bytesToHex(given) };
  }
}

/** Whether two digests are the same, looking at all of both. */
export function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  let differences = one.length ^ other.length;
  for (let at = 0; at < one.length; at++) differences |= one[at]! ^ (other[at] ?? 0);
  return differences === 0;
}

const digestOf = (key: string): Uint8Array => sha256(utf8ToBytes(key));

/** The message must not show the key: it goes to logs. */
function checkKey(label: string, key: string): void {
  if (keyPattern.test(key)) return;
  const found = key === "" ? "it is empty" : `it has ${key.length} characters`;
  throw new InputError(
    `The API key ${label} must be 1 to ${keyCharactersMax} printable ASCII characters ` +
      `without spaces; ${found}.`,
  );
}

import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { TokenId } from "../ids.ts";
import { idsOf, type NewHash } from "./spill-file.ts";
import type { SpillFiles } from "./spill-files.ts";
import { readHeader, type SpillIdentity, sameIdentity } from "./spill-header.ts";
import type { TokenPrefix } from "./token-prefix.ts";

/** What is known of an entry's file without its floats. */
export interface Spilled extends TokenPrefix {
  readonly context: boolean;
  readonly bytes: number;
}

/** Read of every file, so that few are opened twice: the header, and the ids of 14,000 tokens at least. */
const startBytes = 131_072;

/** The name of an entry's file: 32 hex digits. */
export function spillName(
  ids: readonly TokenId[],
  context: boolean,
  { model, backend, build, probe }: SpillIdentity,
  newHash: NewHash,
): string {
  const hash = newHash();
  hash.update(utf8ToBytes(JSON.stringify([model, backend, build, probe, context])));
  hash.update(new Uint8Array(Uint32Array.from(ids).buffer));
  return bytesToHex(hash.digest()).slice(0, 32);
}

/**
 * What a file of `bytes` holds, by its header, ids and name; null where it is torn, of another identity,
 * or gone. Floats are checked when they are read.
 */
export async function spilledIn(
  files: SpillFiles,
  name: string,
  bytes: number,
  identity: SpillIdentity,
): Promise<Spilled | null> {
  const start = await files.read(name, startBytes);
  const header = start && readHeader(start);
  if (header?.fileBytes !== bytes || !sameIdentity(header.identity, identity)) return null;
  const { floatsAt, rows, context } = header;
  const whole = floatsAt > startBytes ? await files.read(name, floatsAt) : start;
  if (!whole || whole.length < floatsAt) return null;
  const ids = idsOf(whole, header);
  const named = spillName(ids, context, identity, files.newHash) === name;
  return named ? { ids, rows, context, bytes } : null;
}

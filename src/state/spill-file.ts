import { sha256 } from "@noble/hashes/sha2.js";
import type { Snapshot } from "../backend/backend.ts";
import { nextTask } from "../clock.ts";
import { invariant } from "../errors.ts";
import type { TokenId } from "../ids.ts";
import {
  digestBytes,
  eachPart,
  encodeHeader,
  placed,
  readHeader,
  type SpillFields,
  type SpillHeader,
  type SpillIdentity,
  type SpillPart,
  sameIdentity,
} from "./spill-header.ts";

/** A cached prefix as it lies on disk. The snapshot has as many rows as there are ids. */
export interface SpillEntry {
  readonly ids: readonly TokenId[];
  /** Whether the drafter's keys and values of all rows are right. */
  readonly context: boolean;
  readonly snapshot: Snapshot;
}

/** SHA-256, from wherever a platform has it. */
export interface SpillHash {
  update(bytes: Uint8Array): unknown;
  digest(): Uint8Array;
}

export type NewHash = () => SpillHash;

/** For platforms that have none of their own. */
export const portableHash: NewHash = () => sha256.create();

/** Hashed at once: some milliseconds, so that streams that are served meanwhile don't wait. */
const pieceBytes = 2 ** 22;

/**
 * An entry as a file: magic, version and header (`encodeHeader`), token ids (u32), the snapshot's arrays
 * (f32) as they are, and the SHA-256 of all before; everything little-endian. The snapshot's logits are
 * not in it.
 * @returns pieces one behind the other, hashed as they are taken; arrays are not copied
 */
export function* encodeSpill(
  entry: SpillEntry,
  identity: SpillIdentity,
  newHash: NewHash = portableHash,
): Generator<Uint8Array> {
  const parts = [
    encodeHeader(fieldsOf(entry, identity)),
    bytesOf(Uint32Array.from(entry.ids)),
    ...Object.values(eachPart((part) => bytesOf(entry.snapshot[part]))),
  ];
  const hash = newHash();
  for (const piece of parts.flatMap(piecesOf)) {
    hash.update(piece);
    yield piece;
  }
  yield hash.digest();
}

/** How long the file of an entry is. */
export function spillBytes(entry: SpillEntry, identity: SpillIdentity): number {
  const fields = fieldsOf(entry, identity);
  return placed(fields, encodeHeader(fields).length).fileBytes;
}

/**
 * What `encodeSpill` made of an entry, bit for bit; null for any other bytes. The snapshot's arrays are
 * views of `bytes`.
 */
export async function decodeSpill(
  bytes: Uint8Array,
  identity: SpillIdentity,
  newHash: NewHash = portableHash,
): Promise<SpillEntry | null> {
  const header = readHeader(bytes);
  if (header?.fileBytes !== bytes.length || !sameIdentity(header.identity, identity)) return null;
  const hash = newHash();
  for (const piece of piecesOf(bytes.subarray(0, -digestBytes))) {
    hash.update(piece);
    if (piece.length === pieceBytes) await nextTask();
  }
  const kept = bytes.subarray(-digestBytes);
  if (hash.digest().some((byte, at) => byte !== kept[at])) return null;
  const { rows, context } = header;
  return {
    ids: idsOf(bytes, header),
    context,
    snapshot: { rows, ...floatsOf(bytes, header), logits: null },
  };
}

/** The token ids of a file, of which at least `floatsAt` bytes are there. */
export function idsOf(bytes: Uint8Array, { idsAt, floatsAt, rows }: SpillHeader): TokenId[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset + idsAt, floatsAt - idsAt);
  return Array.from({ length: rows }, (_, row) => view.getUint32(4 * row, true));
}

function floatsOf(bytes: Uint8Array, header: SpillHeader): Record<SpillPart, Float32Array> {
  // A copy begins at a whole word.
  const { buffer, byteOffset } = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes);
  let at = byteOffset + header.floatsAt;
  return eachPart((part) => {
    const floats = new Float32Array(buffer, at, header.floats[part]);
    at += floats.byteLength;
    return floats;
  });
}

function fieldsOf({ ids, context, snapshot }: SpillEntry, identity: SpillIdentity): SpillFields {
  const { rows } = snapshot;
  invariant(rows === ids.length, `a snapshot of ${rows} rows for ${ids.length} tokens`);
  return { identity, rows, context, floats: eachPart((part) => snapshot[part].length) };
}

const piecesOf = (bytes: Uint8Array): Uint8Array[] =>
  Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, index) =>
    bytes.subarray(index * pieceBytes, (index + 1) * pieceBytes),
  );

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

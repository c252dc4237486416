import type { Snapshot } from "../backend/backend.ts";
import { invariant } from "../errors.ts";
import { isRecord } from "../json.ts";

/** Raised when the layout or the meaning of a field changes. */
const version = 1;
const magic = new TextEncoder().encode("dfspill\n");
/** Magic, version, bytes of the JSON text. */
const prefixBytes = magic.length + 8;
const jsonBytesMax = 65_536;
export const digestBytes = 32;

/** The arrays of a snapshot that a file holds. Logits are of one reply, not of a prefix. */
export type SpillPart = Exclude<keyof Snapshot, "rows" | "logits">;

/** Something for each array, in the order in which the file has them. */
export function eachPart<T>(of: (part: SpillPart) => T): Record<SpillPart, T> {
  return {
    state: of("state"),
    history: of("history"),
    keys: of("keys"),
    values: of("values"),
    draftKeys: of("draftKeys"),
    draftValues: of("draftValues"),
  };
}

const identityKeys = ["model", "backend", "build", "probe"] as const;

/** Everything that a snapshot's floats depend on, but the tokens. */
export interface SpillIdentity {
  /** Weights and shape, the drafter's among them. */
  readonly model: string;
  /** Arithmetic and device. */
  readonly backend: string;
  readonly build: string;
  /** What `numericsProbe` found. */
  readonly probe: string;
}

/** What the JSON text of a file says. */
export interface SpillFields {
  readonly identity: SpillIdentity;
  readonly rows: number;
  /** Whether the drafter's keys and values of all rows are right. */
  readonly context: boolean;
  /** Lengths of the arrays. */
  readonly floats: Readonly<Record<SpillPart, number>>;
}

export interface SpillHeader extends SpillFields {
  /** Where the token ids begin. */
  readonly idsAt: number;
  /** Where they end, and the arrays begin. */
  readonly floatsAt: number;
  /** Of the whole file. */
  readonly fileBytes: number;
}

export const sameIdentity = (a: SpillIdentity, b: SpillIdentity): boolean =>
  identityKeys.every((key) => a[key] === b[key]);

/** The beginning of a file, up to its token ids. Spaces fill it up to whole words, so that floats are aligned. */
export function encodeHeader({ identity, rows, context, floats }: SpillFields): Uint8Array {
  const { model, backend, build, probe } = identity;
  const fields = { identity: { model, backend, build, probe }, rows, context, floats };
  const json = new TextEncoder().encode(JSON.stringify(fields));
  const jsonBytes = Math.ceil(json.length / 4) * 4;
  invariant(jsonBytes <= jsonBytesMax, `a spill header of ${jsonBytes} bytes`);
  const bytes = new Uint8Array(prefixBytes + jsonBytes).fill(0x20);
  bytes.set(magic);
  const numbers = new DataView(bytes.buffer, magic.length);
  numbers.setUint32(0, version, true);
  numbers.setUint32(4, jsonBytes, true);
  bytes.set(json, prefixBytes);
  return bytes;
}

/**
 * Reads the header from the beginning of a file; null where it is none of this version. Whether the file
 * has as many bytes as it says is for the caller to check, before anything is allocated for them.
 */
export function readHeader(bytes: Uint8Array): SpillHeader | null {
  if (bytes.length < prefixBytes || magic.some((byte, at) => bytes[at] !== byte)) return null;
  const numbers = new DataView(bytes.buffer, bytes.byteOffset + magic.length, 8);
  const jsonBytes = numbers.getUint32(4, true);
  const idsAt = prefixBytes + jsonBytes;
  if (numbers.getUint32(0, true) !== version || jsonBytes % 4 !== 0) return null;
  if (jsonBytes > jsonBytesMax || idsAt > bytes.length) return null;
  const fields = fieldsOf(bytes.subarray(prefixBytes, idsAt));
  return fields && placed(fields, idsAt);
}

/** Where things lie in a file whose header ends at `idsAt`. */
export function placed(fields: SpillFields, idsAt: number): SpillHeader {
  const floatsAt = idsAt + 4 * fields.rows;
  const floats = Object.values(fields.floats).reduce((sum, length) => sum + length, 0);
  return { ...fields, idsAt, floatsAt, fileBytes: floatsAt + 4 * floats + digestBytes };
}

function fieldsOf(json: Uint8Array): SpillFields | null {
  const fields = parsed(json);
  if (!isRecord(fields)) return null;
  const { identity, rows, context, floats } = fields;
  if (!isIdentity(identity) || !isCount(rows) || typeof context !== "boolean") return null;
  if (!isRecord(floats)) return null;
  const lengths = eachPart((part) => floats[part]);
  return areCounts(lengths) ? { identity, rows, context, floats: lengths } : null;
}

function parsed(json: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(json));
  } catch {
    return null;
  }
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0;

function isIdentity(value: unknown): value is SpillIdentity {
  return isRecord(value) && identityKeys.every((key) => typeof value[key] === "string");
}

const areCounts = (record: Record<SpillPart, unknown>): record is Record<SpillPart, number> =>
  Object.values(record).every(isCount);

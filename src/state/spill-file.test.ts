import { createHash } from "node:crypto";
import { describe, expect, it, test } from "vitest";
import { decodeSpill, encodeSpill, spillBytes } from "./spill-file.ts";
import { readHeader } from "./spill-header.ts";
import { bitsOf, sampleEntry, sampleFloats, sampleIdentity } from "./spill-samples.cases.ts";

const entry = sampleEntry([5, 0, 4_294_967_295]);
const file = joined(encodeSpill(entry, sampleIdentity));
const decode = (bytes: Uint8Array) => decodeSpill(bytes, sampleIdentity);

function joined(parts: Iterable<Uint8Array>): Uint8Array {
  return new Uint8Array(Buffer.concat([...parts]));
}

/** A file with a right checksum whose header is any text, of one byte a letter. */
function withHeader(json: string, version = 1, jsonBytes = json.length): Uint8Array {
  const start = new Uint8Array(16);
  start.set(Buffer.from("dfspill\n"));
  new DataView(start.buffer).setUint32(8, version, true);
  new DataView(start.buffer).setUint32(12, jsonBytes, true);
  const rest = file.subarray(readHeader(file)!.idsAt, -32);
  const body = joined([start, Buffer.from(json, "latin1"), rest]);
  return joined([body, createHash("sha256").update(body).digest()]);
}

/** The sample's header as such a text, with changes. */
function headerJson(changes: object = {}, floats: object = {}): string {
  const { identity, rows, context, floats: lengths } = readHeader(file)!;
  const fields = { identity, rows, context, floats: { ...lengths, ...floats }, ...changes };
  const json = Buffer.from(JSON.stringify(fields)).toString("latin1");
  return json.padEnd(Math.ceil(json.length / 4) * 4);
}

describe("a spilled entry", () => {
  it.each([
    ["as it was", entry],
    ["without the drafter's context", sampleEntry([1, 2], { context: false })],
    ["of no tokens", sampleEntry([])],
    ["of more than is hashed at once", sampleEntry([4], { stateFloats: 2 ** 21 + 3 })],
    ["without a state", sampleEntry([9], { stateFloats: 0 })],
  ])("comes back bit for bit: %s", async (_, sample) => {
    const bytes = joined(encodeSpill(sample, sampleIdentity));
    expect(bytes.length).toBe(spillBytes(sample, sampleIdentity));
    expect(bitsOf(await decode(bytes))).toEqual(bitsOf(sample));
  });

  it("has a fixed layout", () => {
    expect(Buffer.from(file.subarray(0, 8)).toString()).toBe("dfspill\n");
    const { idsAt, floatsAt, ...fields } = readHeader(file)!;
    expect(fields).toEqual({
      identity: sampleIdentity,
      rows: 3,
      context: true,
      floats: { state: 24, history: 5, keys: 12, values: 12, draftKeys: 6, draftValues: 6 },
      fileBytes: file.length,
    });
    expect(Array.from(new Uint32Array(file.slice(idsAt, floatsAt).buffer))).toEqual(entry.ids);
    const state = new Uint8Array(entry.snapshot.state.buffer);
    expect(file.subarray(floatsAt, floatsAt + 96)).toEqual(state);
    const digest = createHash("sha256").update(file.subarray(0, -32)).digest();
    expect(file.subarray(-32)).toEqual(new Uint8Array(digest));
  });

  it("is the same by Node's hash, and either reads the other's", async () => {
    const node = () => createHash("sha256");
    expect(joined(encodeSpill(entry, sampleIdentity, node))).toEqual(file);
    expect(bitsOf(await decodeSpill(file, sampleIdentity, node))).toEqual(bitsOf(entry));
  });

  it("is encoded without a copy of the arrays, whole buffers or not, and without logits", async () => {
    const within = sampleFloats(30, 1).subarray(3, 27);
    const snapshot = { ...entry.snapshot, state: within, logits: new Float32Array(7) };
    const parts = [...encodeSpill({ ...entry, snapshot }, sampleIdentity)];
    expect(parts.some(({ buffer }) => buffer === within.buffer)).toBe(true);
    const back = await decode(joined(parts));
    expect(bitsOf(back)).toEqual(bitsOf({ ...entry, snapshot: { ...snapshot, logits: null } }));
  });

  it("is decoded from wherever it lies in a buffer", async () => {
    for (const offset of [1, 2, 3, 4]) {
      const moved = new Uint8Array(file.length + offset).subarray(offset);
      moved.set(file);
      expect(bitsOf(await decode(moved))).toEqual(bitsOf(entry));
    }
  });

  it("has as many rows as tokens", () => {
    expect(() => [...encodeSpill({ ...entry, ids: [1] }, sampleIdentity)]).toThrow(
      /3 rows for 1 tokens/,
    );
  });
});

describe("any other file is null", () => {
  it("with one bit flipped, wherever", async () => {
    const bytes = file.slice();
    for (let at = 0; at < bytes.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        bytes[at]! ^= 1 << bit;
        if ((await decode(bytes)) !== null) expect.fail(`bit ${bit} of byte ${at} was flipped`);
        bytes[at]! ^= 1 << bit;
      }
    }
    expect(await decode(bytes)).not.toBeNull();
  });

  it("truncated, at every length, or with more behind it", async () => {
    for (let length = 0; length < file.length; length++) {
      if ((await decode(file.subarray(0, length))) !== null) expect.fail(`cut at ${length}`);
    }
    expect(await decode(joined([file, new Uint8Array(1)]))).toBeNull();
    expect(await decode(joined([file, file]))).toBeNull();
  });

  it.each(["model", "backend", "build", "probe"])("of another %s", async (key) => {
    expect(await decodeSpill(file, { ...sampleIdentity, [key]: "other" })).toBeNull();
  });

  it("of another version", async () => {
    expect(bitsOf(await decode(withHeader(headerJson())))).toEqual(bitsOf(entry));
    for (const version of [0, 2, 2 ** 32 - 1]) {
      expect(await decode(withHeader(headerJson(), version))).toBeNull();
    }
  });

  test.each([
    ["more floats than there are bytes", headerJson({}, { state: 2 ** 52 })],
    ["floats beyond all numbers", headerJson({}, { state: 2 ** 60, keys: -(2 ** 60) })],
    ["fewer floats", headerJson({}, { state: 23 })],
    ["negative floats", headerJson({}, { state: -1, history: 30 })],
    ["a fraction of a float", headerJson({}, { state: 23.5, history: 5.5 })],
    ["floats that are text", headerJson({}, { state: "24" })],
    ["no floats", headerJson({ floats: null })],
    ["more rows", headerJson({ rows: 2 ** 40 })],
    ["negative rows", headerJson({ rows: -3 })],
    ["no rows", headerJson({ rows: undefined })],
    ["a context that is no flag", headerJson({ context: 1 })],
    ["no identity", headerJson({ identity: null })],
    ["half an identity", headerJson({ identity: { model: "m1 + d1" } })],
    ["an array", "[]  "],
    ["a number", "1234"],
    ["no JSON", "{}}}"],
    ["nothing", ""],
    ["brackets alone", "[".repeat(65_536)],
    ["no UTF-8", "\xff\xfe  "],
    ["a length that is no whole word", "{}"],
    ["too long a header", headerJson().padEnd(65_540)],
  ])("whose header says %s, with a right checksum", async (_, json) => {
    expect(await decode(withHeader(json))).toBeNull();
  });

  it.each([4, 2 ** 31, 2 ** 32 - 4])("whose header is said to have %s bytes", async (jsonBytes) => {
    expect(await decode(withHeader(headerJson(), 1, jsonBytes))).toBeNull();
  });
});

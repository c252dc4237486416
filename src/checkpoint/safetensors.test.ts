import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CheckpointError } from "../errors.ts";
import { safetensorsHeaderBytesMax } from "../limits.ts";
import { memorySource, rawFile, safetensorsFile } from "./files.cases.ts";
import { parseSafetensorsHeader, readSafetensorsHeader } from "./safetensors.ts";

const good = safetensorsFile([
  { name: "a", dtype: "BF16", shape: [2, 3], data: new Uint8Array(12) },
  { name: "b", dtype: "F32", shape: [], data: new Uint8Array(4) },
  { name: "empty", dtype: "U8", shape: [0, 7], data: new Uint8Array(0) },
]);

const read = (bytes: Uint8Array) => readSafetensorsHeader(memorySource("x.safetensors", bytes));

describe("readSafetensorsHeader", () => {
  it("finds each tensor's place", async () => {
    const { tensors, raw } = await read(good);
    const start = raw.length;
    expect(tensors.map(({ name, offset, bytes }) => [name, offset - start, bytes])).toEqual([
      ["a", 0, 12],
      ["b", 12, 4],
      ["empty", 16, 0],
    ]);
  });

  it.each([0, 4, 7])("refuses a file cut at byte %i", async (bytes) => {
    await expect(read(good.slice(0, bytes))).rejects.toThrow(`file is ${bytes} bytes`);
  });

  it("refuses a file cut inside the header", async () => {
    const header = new DataView(good.buffer).getUint32(0, true);
    await expect(read(good.slice(0, 40))).rejects.toThrow(
      `x.safetensors: header says ${header} bytes, file is 40 bytes`,
    );
  });

  it("refuses a file cut inside the last tensor, naming it", async () => {
    const cut = good.slice(0, good.length - 1);
    await expect(read(cut)).rejects.toThrow(
      `tensor b: ends at byte ${good.length}, file is ${good.length - 1} bytes`,
    );
  });

  it.each([2n ** 63n, 2n ** 64n - 1n, 2n ** 53n])(
    "refuses a header of %i bytes",
    async (length) => {
      const bytes = good.slice();
      new DataView(bytes.buffer).setBigUint64(0, length, true);
      await expect(read(bytes)).rejects.toThrow(
        `header says ${length} bytes, file is ${good.length} bytes`,
      );
    },
  );

  it("refuses a header over the limit without reading it", async () => {
    const head = new Uint8Array(8);
    new DataView(head.buffer).setBigUint64(0, BigInt(safetensorsHeaderBytesMax + 1), true);
    const source = {
      ...memorySource("big", head),
      size: 2 ** 40,
      read: async (_: number, length: number) => {
        expect(length).toBe(8);
        return head;
      },
    };
    await expect(readSafetensorsHeader(source)).rejects.toThrow(/at most 25000000 are read/);
  });

  it("gives a typed error or tensors inside the file, whichever bytes are changed", async () => {
    const edits = fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { maxLength: 4 });
    const property = fc.asyncProperty(edits, fc.nat(good.length), async (changes, length) => {
      const bytes = good.slice(0, length);
      for (const [place, value] of changes) if (place < length) bytes[place] = value;
      try {
        const { tensors } = await read(bytes);
        for (const { offset, bytes: size } of tensors)
          expect(offset + size).toBeLessThanOrEqual(length);
      } catch (error) {
        if (!(error instanceof CheckpointError)) throw error;
      }
    });
    await fc.assert(property, { numRuns: 2000 });
  });

  it("refuses bytes after the last tensor", async () => {
    await expect(read(new Uint8Array([...good, 0]))).rejects.toThrow(/tensors end at byte/);
  });
});

describe("a header's JSON", () => {
  const tensor = (dtype: unknown, shape: unknown, range: unknown) =>
    JSON.stringify({ t: { dtype, shape, data_offsets: range } });
  const two = (first: number[], second: number[]) =>
    JSON.stringify({
      a: { dtype: "U8", shape: [first[1]! - first[0]!], data_offsets: first },
      b: { dtype: "U8", shape: [second[1]! - second[0]!], data_offsets: second },
    });
  it.each<[string, string, RegExp]>([
    ["not an object", " {}", /does not start with \{/],
    ["broken", "{", /not valid JSON/],
    ["an entry that is no object", '{"t":1}', /tensor t: is 1/],
    ["metadata that is no object", '{"__metadata__":1}', /__metadata__/],
    ["an unknown dtype", tensor("X9", [8], [0, 8]), /tensor t: unknown dtype "X9"/],
    ["a wrong dtype", tensor("F16", [8], [0, 8]), /tensor t: F16 \[8\] does not take the 8 bytes/],
    ["a wrong shape", tensor("U8", [2, 3], [0, 8]), /tensor t: U8 \[2,3\] does not take/],
    ["a negative size", tensor("U8", [-8], [0, 8]), /bad shape \[-8\]/],
    ["a fractional size", tensor("U8", [1.5], [0, 8]), /bad shape \[1.5\]/],
    ["an overflowing shape", tensor("U8", [2 ** 40, 2 ** 40], [0, 8]), /does not take/],
    ["too many axes", tensor("U8", Array(9).fill(1), [0, 8]), /bad shape/],
    ["offsets past the end", tensor("U8", [9], [0, 9]), /file is \d+ bytes/],
    ["offsets that run backwards", tensor("U8", [4], [4, 0]), /run backwards/],
    ["three offsets", tensor("U8", [4], [0, 4, 8]), /bad data_offsets/],
    ["an overlap", two([0, 5], [4, 8]), /tensor b starts at .* overlaps a/],
    ["a hole", two([0, 3], [4, 8]), /tensor b starts at .* leaves a hole after a/],
    ["a hole at the start", tensor("U8", [4], [4, 8]), /leaves a hole after the header/],
    ["a tensor twice", '{"t":{"a":1},"\\u0074":{"a":1}}', /has the key "t" twice/],
    ["a long name", JSON.stringify({ ["x".repeat(1025)]: {} }), /name is longer than 1024/],
    ["deep nesting", `{"t":${"[".repeat(100)}${"]".repeat(100)}}`, /nested deeper than 64/],
  ])("is refused: %s", async (_, header, message) => {
    const error = await read(rawFile(header, [new Uint8Array(8)])).catch((caught) => caught);
    expect(error).toBeInstanceOf(CheckpointError);
    expect(error.message).toMatch(message);
    expect(error.message).toContain("x.safetensors");
  });

  it("keeps a tensor called __proto__ as any other", () => {
    const json = '{"__proto__":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}';
    const header = new TextEncoder().encode(json);
    const [tensor] = parseSafetensorsHeader("x", header, 8 + header.length + 1);
    expect(tensor?.name).toBe("__proto__");
  });

  it("gives a typed error or a valid result, whatever the bytes", () => {
    const anyJson = fc.dictionary(
      fc.string(),
      fc.oneof(
        fc.json().map((text): unknown => JSON.parse(text)),
        fc.record({
          dtype: fc.constantFrom("U8", "BF16", "F4", "nope"),
          shape: fc.array(fc.oneof(fc.nat(4), fc.integer(), fc.double()), { maxLength: 3 }),
          data_offsets: fc.array(fc.nat(16), { maxLength: 3 }),
        }),
      ),
    );
    const header = fc.oneof(
      fc.uint8Array({ maxLength: 64 }),
      fc.string().map((text) => new TextEncoder().encode(`{${text}`)),
      anyJson.map((value) => new TextEncoder().encode(JSON.stringify(value))),
    );
    // fast-check prints the seed of a failing run.
    const property = fc.property(header, fc.nat(64), (bytes, dataBytes) => {
      try {
        const tensors = parseSafetensorsHeader("fuzz", bytes, 8 + bytes.length + dataBytes);
        const total = tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
        expect(total).toBe(dataBytes);
      } catch (error) {
        if (!(error instanceof CheckpointError)) throw error;
      }
    });
    fc.assert(property, { numRuns: 10_000 });
  });
});

import { sha256 } from "@noble/hashes/sha2.js";
import { expect, test } from "vitest";
import { keyCharactersMax, keysMax } from "../limits.ts";
import { ApiKeys, sameBytes } from "./keys.ts";

test("digests are the same where every byte is", () => {
  const digest = sha256(new Uint8Array([1, 2, 3]));
  expect(sameBytes(digest, digest.slice())).toBe(true);
  for (let at = 0; at < digest.length; at++) {
    for (const bit of [1, 128]) {
      const other = digest.slice();
      other[at]! ^= bit;
      expect(sameBytes(digest, other)).toBe(false);
      expect(sameBytes(other, digest)).toBe(false);
    }
  }
});

test("bytes of other lengths are not the same", () => {
  const bytes = new Uint8Array([7, 0, 0]);
  expect(sameBytes(bytes, bytes.slice(0, 2))).toBe(false);
  expect(sameBytes(bytes.slice(0, 2), bytes)).toBe(false);
  expect(sameBytes(bytes, new Uint8Array())).toBe(false);
  expect(sameBytes(new Uint8Array(), new Uint8Array())).toBe(true);
});

test("a key is found by its whole text alone", () => {
  const keys = new ApiKeys([
    { label: "ann", key: "secret-1" },
    { label: "ben", key: "secret-2" },
    { label: "ben", key: "secret-3" },
    { label: "again", key: "secret-2" },
  ]);
  expect(["secret-1", "secret-2", "secret-3"].map((key) => keys.find(key)?.label)).toEqual([
    ...["ann", "ben", "ben"],
  ]);
  for (const key of ["", "secret-", "secret-11", "Secret-1", " secret-1", "ann", "\ud800"]) {
    expect(keys.find(key)).toBeNull();
  }
  expect(keys.find("x".repeat(10_000_000))).toBeNull();
});

test("a key's digest is its own, whatever it is called", () => {
  const digestOf = (label: string, key: string) => new ApiKeys([{ label, key }]).find(key)?.digest;
  // SHA-256 of "abc", from FIPS 180-2.
  const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  expect([digestOf("ann", "abc"), digestOf("ben", "abc")]).toEqual([abc, abc]);
  expect(digestOf("ann", "abd")).not.toBe(abc);
});

test("without a key nobody is let in", () => {
  expect(new ApiKeys([]).find("")).toBeNull();
});

test("other keys take the place of all that were there", () => {
  const keys = new ApiKeys([{ label: "old", key: "one" }]);
  keys.replace([{ label: "new", key: "two" }]);
  expect([keys.find("one"), keys.find("two")?.label]).toEqual([null, "new"]);
});

test.each([
  ["", "it is empty"],
  ["two words", "it has 9 characters"],
  ["tab\t", "it has 4 characters"],
  ["schlüssel", "it has 9 characters"],
  ["x".repeat(keyCharactersMax + 1), `it has ${keyCharactersMax + 1} characters`],
])("%j is no key, and stays unsaid", (key, found) => {
  const keys = new ApiKeys([{ label: "old", key: "one" }]);
  const set = () =>
    keys.replace([
      { label: "fine", key: "two" },
      { label: "bad", key },
    ]);
  const rule = `The API key bad must be 1 to ${keyCharactersMax} printable ASCII characters`;
  expect(set).toThrow(`${rule} without spaces; ${found}.`);
  if (key !== "") expect(set).not.toThrow(key);
  expect([keys.find("one")?.label, keys.find("two")]).toEqual(["old", null]);
});

test("the longest key, and as many as there may be", () => {
  const long = "x".repeat(keyCharactersMax);
  const many = Array.from({ length: keysMax - 1 }, (_, at) => ({
    label: `${at}`,
    key: `key${at}`,
  }));
  const keys = new ApiKeys([...many, { label: "long", key: long }]);
  expect([long, "key0", "key1022"].map((key) => keys.find(key)?.label)).toEqual([
    ...["long", "0", "1022"],
  ]);
  expect(() => keys.replace([...many, ...many])).toThrow("There may be at most 1024 API keys");
});

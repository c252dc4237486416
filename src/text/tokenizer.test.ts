import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CheckpointError } from "../errors.ts";
import { Tokenizer } from "./tokenizer.ts";

interface Row {
  text: string;
  ids: number[];
  decoded: string;
}

const golden = new URL("../../fixtures/golden/tokenizer.json", import.meta.url);
const rows: Row[] = JSON.parse(readFileSync(golden, "utf8"));
const nano = new URL("../../models/nano/", import.meta.url);
const nanoJson = readFileSync(new URL("tokenizer.json", nano), "utf8");
const nanoConfig = readFileSync(new URL("tokenizer_config.json", nano), "utf8");
const tokenizer = Tokenizer.fromJson(nanoJson, nanoConfig, "nano/tokenizer.json");

test.each(rows)("golden: $text", ({ text, ids, decoded }) => {
  expect(tokenizer.encode(text)).toEqual(ids);
  expect(tokenizer.decode(ids)).toBe(decoded);
});

test("any well-formed text in composed form survives the round trip", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (raw) => {
      const text = raw.normalize("NFC");
      expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
    }),
  );
});

test("tokens, bytes and flags", () => {
  expect(tokenizer.vocabSize).toBe(8185);
  expect(tokenizer.tokenBytes(198)).toEqual(Uint8Array.of(10));
  expect(tokenizer.tokenBytes(127)).toEqual(Uint8Array.of(0xc3));
  expect(tokenizer.tokenBytes(8179)).toEqual(new TextEncoder().encode("<think>"));
  expect(tokenizer.idOf("<|im_end|>")).toBe(8178);
  expect(tokenizer.idOf("no such token")).toBeUndefined();
  expect([8176, 8177, 8178, 8179, 8184, 64].map((id) => tokenizer.isSpecial(id))).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
});

test("ids of the padding and beyond have no bytes", () => {
  for (const id of [8185, 8191, 1e9, -1]) {
    expect(tokenizer.tokenBytes(id)).toEqual(new Uint8Array(0));
    expect(tokenizer.decode([64, id, 65])).toBe("ab");
  }
});

test("the 256 byte tokens are 256 bytes", () => {
  const bytes = new Set<number>();
  for (let id = 0; id < 8176; id++) {
    const own = tokenizer.tokenBytes(id);
    if (own.length === 1) bytes.add(own[0]!);
  }
  expect(bytes.size).toBe(256);
});

describe("bad files", () => {
  const good = JSON.parse(nanoJson);
  const load = (change: object) => () =>
    Tokenizer.fromJson(JSON.stringify({ ...good, ...change }), null, "x/tokenizer.json");
  const { Ġ: _space, ...vocab } = good.model.vocab;
  const lacking = { ...good.model, vocab };

  test.each([
    ["not JSON", () => Tokenizer.fromJson("{", null, "x/tokenizer.json")],
    ["a list", () => Tokenizer.fromJson("[]", null, "x/tokenizer.json")],
    ["deep nesting", load({ extra: JSON.parse(`${"[".repeat(64)}${"]".repeat(64)}`) })],
    ["no model", load({ model: undefined })],
    ["another model", load({ model: { ...good.model, type: "Unigram" } })],
    ["another decoder", load({ decoder: { type: "WordPiece" } })],
    ["no added tokens", load({ added_tokens: null })],
    ["an added token without content", load({ added_tokens: [{ id: 3 }] })],
    ["an id that is none", load({ added_tokens: [{ content: "a", id: 1.5 }] })],
    ["a missing byte", load({ model: lacking })],
    ["an unknown normalizer", load({ normalizer: { type: "Rot13" } })],
  ])("%s", (_, attempt) => {
    expect(attempt).toThrow(CheckpointError);
    expect(attempt).toThrow(/^x\/tokenizer\.json: /);
  });

  test("the config beside it is named", () => {
    const attempt = () => Tokenizer.fromJson(nanoJson, "nope", "x\\tokenizer.json");
    expect(attempt).toThrow(/^x\\tokenizer_config\.json: /);
  });
});

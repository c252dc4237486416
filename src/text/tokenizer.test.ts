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

test("merges may be written as text, and tokens that are no bytes stand for their UTF-8", () => {
  const description = JSON.parse(nanoJson);
  const { vocab, merges } = description.model;
  const model = {
    ...description.model,
    vocab: { ...vocab, 中文: 9000 },
    merges: merges.map((pair: string[]) => pair.join(" ")),
  };
  const other = Tokenizer.fromJson(JSON.stringify({ ...description, model }), null, "t.json");
  for (const { text, ids } of rows) expect(other.encode(text)).toEqual(ids);
  expect(other.decode([9000])).toBe("中文");
  expect(other.encode("中文")).toEqual(tokenizer.encode("中文"));
  expect(other.vocabSize).toBe(9001);
});

test("added tokens that the config alone lists are added too", () => {
  const listed = { content: "<|audio_start|>", special: true, normalized: false };
  const again = { content: "<think>", special: true, normalized: false };
  const config = JSON.stringify({ added_tokens_decoder: { "8186": listed, "8000": again } });
  const more = Tokenizer.fromJson(nanoJson, config, "t.json");
  expect(more.encode("a<|audio_start|><think>b")).toEqual([64, 8186, 8179, 65]);
  expect([8186, 8179].map((id) => more.isSpecial(id))).toEqual([true, false]);
  expect(more.decode([8186])).toBe("<|audio_start|>");
  expect(more.idOf("<|audio_start|>")).toBe(8186);
  expect(more.vocabSize).toBe(8187);
  expect(more.idOf("")).toBeUndefined();
});

test("long lists of ids are decoded like short ones", () => {
  const ids = Array.from({ length: 200_000 }, (_, index) => (index * 7919) % 8192);
  const streamed = new TextDecoder("utf-8", { ignoreBOM: true });
  const pieces = ids.map((id) => streamed.decode(tokenizer.tokenBytes(id), { stream: true }));
  expect(tokenizer.decode(ids)).toBe(pieces.join("") + streamed.decode());
});

describe("bad files", () => {
  const good = JSON.parse(nanoJson);
  const load = (change: object) => () =>
    Tokenizer.fromJson(JSON.stringify({ ...good, ...change }), null, "x/tokenizer.json");
  const model = (change: object) => load({ model: { ...good.model, ...change } });
  const steps = (...pretokenizers: object[]) =>
    load({ pre_tokenizer: { type: "Sequence", pretokenizers } });
  const [split, bytes] = good.pre_tokenizer.pretokenizers;
  const plain = { content: "<a>", id: 9000 };
  const { Ġ: _space, ...vocab } = good.model.vocab;

  test.each([
    ["not JSON", () => Tokenizer.fromJson("{", null, "x/tokenizer.json")],
    ["a list", () => Tokenizer.fromJson("[]", null, "x/tokenizer.json")],
    ["deep nesting", load({ extra: JSON.parse(`${"[".repeat(64)}${"]".repeat(64)}`) })],
    ["no model", load({ model: undefined })],
    ["another model", load({ model: { ...good.model, type: "Unigram" } })],
    ["another decoder", load({ decoder: { type: "WordPiece" } })],
    ["no added tokens", load({ added_tokens: null })],
    ["an added token without content", load({ added_tokens: [{ id: 3 }] })],
    ["an added token of no letters", load({ added_tokens: [{ id: 3, content: "" }] })],
    ["an added token that takes spaces", load({ added_tokens: [{ ...plain, rstrip: true }] })],
    [
      "an added token that is a whole word",
      load({ added_tokens: [{ ...plain, single_word: true }] }),
    ],
    ["an id that is none", load({ added_tokens: [{ content: "a", id: 1.5 }] })],
    ["an id that is too high", load({ added_tokens: [{ content: "a", id: 1e9 }] })],
    ["an id of two tokens", model({ vocab: { ...good.model.vocab, ab: 64 } })],
    ["a missing byte", model({ vocab })],
    ["no merges", model({ merges: undefined })],
    ["a merge of one", model({ merges: [["a"]] })],
    ["a merge of three", model({ merges: ["a b c"] })],
    ["a merge of no token", model({ merges: [["a", 3]] })],
    ["a merge to no token", model({ merges: ["Ġ!!! Ġ!!!"] })],
    ["a merge of letters that are no bytes", model({ merges: [["a", "中"]] })],
    ["words taken whole", model({ ignore_merges: true })],
    ["merges left out by chance", model({ dropout: 0.1 })],
    ["a mark at words' ends", model({ end_of_word_suffix: "</w>" })],
    ["an unknown normalizer", load({ normalizer: { type: "Rot13" } })],
    ["no pre-tokenizer", load({ pre_tokenizer: null })],
    ["another pre-tokenizer", load({ pre_tokenizer: { type: "Whitespace" } })],
    ["words merged with what is between", steps({ ...split, behavior: "MergedWithNext" }, bytes)],
    ["words that are what is between", steps({ ...split, invert: true }, bytes)],
    ["a space put before", steps(split, { ...bytes, add_prefix_space: true })],
    ["a second regex", steps(split, { ...bytes, use_regex: true })],
    ["a third step", steps(split, bytes, split)],
    ["a regex that isn't known", steps({ ...split, pattern: { Regex: "\\d" } }, bytes)],
    ["a string to split at", steps({ ...split, pattern: { String: " " } }, bytes)],
  ])("%s", (_, attempt) => {
    expect(attempt).toThrow(CheckpointError);
    expect(attempt).toThrow(/^x\/tokenizer\.json: /);
  });

  test("the config beside it is named", () => {
    const attempt = () => Tokenizer.fromJson(nanoJson, "nope", "x\\tokenizer.json");
    expect(attempt).toThrow(/^x\\tokenizer_config\.json: /);
    const config = JSON.stringify({ added_tokens_decoder: { "9000": { ...plain, lstrip: true } } });
    const other = () => Tokenizer.fromJson(nanoJson, config, "x/tokenizer.json");
    expect(other).toThrow(/^x\/tokenizer_config\.json: added token "<a>" has lstrip/);
  });
});

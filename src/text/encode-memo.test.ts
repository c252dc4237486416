import { readFileSync } from "node:fs";
import { Tokenizer as HubTokenizer } from "@huggingface/tokenizers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addedTokenPattern, EncodeMemo } from "./encode-memo.ts";

const nanoUrl = new URL("../../models/nano/tokenizer.json", import.meta.url);
const nano = JSON.parse(readFileSync(nanoUrl, "utf8"));

/** An added token of nano's kind, with the flags that a case is about. */
function added(id: number, content: string, flags: object = {}) {
  const plain = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  return { id, content, special: true, ...plain, ...flags };
}

function patternOf(hub: HubTokenizer): RegExp | null {
  return addedTokenPattern(hub.get_added_tokens_decoder().values());
}

/** Specials whole, in halves and in words, between text of any kind, lone surrogates included. */
const anyText = fc
  .array(
    fc.oneof(
      fc.constantFrom("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<|im_start|><think>"),
      fc.constantFrom("<|im_sta", "rt|>", "<|", "|>", "<", ">", "<<|im_end|>>", "<think", "/"),
      fc.constantFrom(" ", "\n", "\n\n", "  \n", "x", " user", "e\u0301", "\u0301", "\ud800", "12"),
      fc.string({ unit: "binary" }),
      fc.string(),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(""));

describe("gives what the tokenizer gives", () => {
  test.each<[string, object]>([
    ["nano's", {}],
    ["no normaliser", { normalizer: null }],
    [
      "tokens that begin alike or overlap",
      {
        added_tokens: [
          ...nano.added_tokens,
          added(8185, "<"),
          added(8186, "<|im_start|><think>"),
          added(8187, "|><"),
          added(8188, " "),
        ],
      },
    ],
    [
      "letters of patterns",
      { added_tokens: [added(8185, "|"), added(8186, "\\"), added(8187, "$.*")] },
    ],
    ["a token that takes spaces", { added_tokens: [added(8185, "<think>", { rstrip: true })] }],
    [
      "a token looked for in normalised text",
      { added_tokens: [added(8185, "é", { normalized: true }), added(8186, "<think>")] },
    ],
    ["no added tokens", { added_tokens: [] }],
  ])("%s", (_, change) => {
    const hub = new HubTokenizer({ ...nano, ...change }, {});
    const whole = (text: string) => hub.encode(text, { add_special_tokens: false }).ids;
    // So small that pieces are forgotten while it runs.
    const memo = new EncodeMemo(whole, patternOf(hub), 512);
    fc.assert(
      fc.property(anyText, (text) => {
        expect(memo.encode(text)).toEqual(whole(text));
        expect(memo.encode(text)).toEqual(whole(text));
      }),
    );
  });
});

test.each(["lstrip", "rstrip", "single_word", "normalized"])(
  "a token's %s forbids cuts",
  (flag) => {
    const tokens = [added(0, "<a>"), added(1, "<b>", { [flag]: true })];
    expect(addedTokenPattern(tokens)).toBeNull();
  },
);

test("an empty token is no place to cut", () => {
  expect(addedTokenPattern([added(0, "")])).toBeNull();
  expect("a<b>c".split(addedTokenPattern([added(0, ""), added(1, "<b>")])!)).toEqual([
    "a",
    "<b>",
    "c",
  ]);
});

describe("what is remembered", () => {
  /** A memo of letters' codes, cut at commas, and the texts it had to encode. */
  function spied(charsMax?: number): { memo: EncodeMemo; encoded: string[] } {
    const encoded: string[] = [];
    const encode = (text: string) => {
      encoded.push(text);
      return Array.from(text, (letter) => letter.charCodeAt(0));
    };
    return { memo: new EncodeMemo(encode, /(,)/, charsMax), encoded };
  }

  test("a piece is encoded once; changing what was returned changes nothing", () => {
    const { memo, encoded } = spied();
    expect(memo.encode("a,b,a")).toEqual([97, 44, 98, 44, 97]);
    memo.encode("a").length = 0;
    expect(memo.encode("b,a")).toEqual([98, 44, 97]);
    expect(encoded).toEqual(["a", ",", "b"]);
    expect(memo.encode("")).toEqual([]);
  });

  test("the piece used longest ago is forgotten first", () => {
    const { memo, encoded } = spied(2 * (10 + 64));
    const [a, b, c] = ["a".repeat(10), "b".repeat(10), "c".repeat(10)] as const;
    for (const text of [a, b, a, c, a]) memo.encode(text);
    expect(encoded).toEqual([a, b, c]);
    memo.encode(b);
    expect(encoded).toEqual([a, b, c, b]);
  });

  test("a long piece pushes out as many as it needs, one that is too long none", () => {
    const { memo, encoded } = spied(300);
    for (const text of ["a", "b", "c", "d"]) memo.encode(text);
    memo.encode("x".repeat(300 - 64 + 1));
    memo.encode("d");
    expect(encoded).toHaveLength(5);
    memo.encode("y".repeat(100));
    for (const text of ["d", "c", "b"]) memo.encode(text);
    expect(encoded.slice(5)).toEqual(["y".repeat(100), "b"]);
  });
});

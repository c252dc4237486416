import { readFileSync } from "node:fs";
import { Tokenizer as HubTokenizer } from "@huggingface/tokenizers";
import fc from "fast-check";
import { expect, test } from "vitest";
import { AddedTokens } from "./added-tokens.ts";
import { Tokenizer } from "./tokenizer.ts";

const nanoUrl = new URL("../../models/nano/tokenizer.json", import.meta.url);
const nano = JSON.parse(readFileSync(nanoUrl, "utf8"));

/** An added token of nano's kind, with the flags that a case is about. */
function added(id: number, content: string, flags: object = {}) {
  const plain = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  return { id, content, special: true, ...plain, ...flags };
}

/** Specials whole, in halves and in words, between text of any kind, lone surrogates included. */
const anyText = fc
  .array(
    fc.oneof(
      fc.constantFrom("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<|im_start|><think>"),
      fc.constantFrom("<|im_sta", "rt|>", "<|", "|>", "<", ">", "<<|im_end|>>", "<think", "/"),
      fc.constantFrom(
        " ",
        "\n",
        "\n\n",
        "  \n",
        "x",
        " user",
        "e\u0301",
        "\u0301",
        "\u00e9",
        "\ud800",
        "12",
      ),
      fc.string({ unit: "binary" }),
      fc.string(),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(""));

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
  [
    "a token looked for in normalised text, which isn't composed itself",
    {
      added_tokens: [
        added(8185, "e\u0301\u0301", { normalized: true }),
        added(8186, "x", { normalized: undefined, special: false }),
        added(8187, "<think>"),
      ],
    },
  ],
  ["no added tokens", { added_tokens: [] }],
])("texts are cut as the library cuts them: %s", (_, change) => {
  const json = JSON.stringify({ ...nano, ...change });
  const hub = new HubTokenizer(JSON.parse(json), {});
  const tokenizer = Tokenizer.fromJson(json, null, "tokenizer.json");
  fc.assert(
    fc.property(anyText, (text) => {
      const { ids } = hub.encode(text, { add_special_tokens: false });
      expect(tokenizer.encode(text)).toEqual(ids);
      expect(tokenizer.encode(text)).toEqual(ids);
    }),
  );
});

test("pieces, and which of them are tokens", () => {
  const plain = { special: false, normalized: false };
  const tokens = new AddedTokens([
    { id: 1, content: "<a>", ...plain },
    { id: 2, content: "<a>b", ...plain },
  ]);
  expect(tokens.cut("x<a>b<a><a")).toEqual(["x", "<a>b", "<a>", "<a"]);
  expect(["<a>", "<a>b", "<a"].map((piece) => tokens.idOf(piece))).toEqual([1, 2, undefined]);
  expect(tokens.cut("")).toEqual([]);
  expect(new AddedTokens([]).cut("x")).toEqual(["x"]);
});

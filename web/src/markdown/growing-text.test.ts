import fc from "fast-check";
import { expect, test } from "vitest";
import { GrowingText } from "./growing-text.ts";
import { lex } from "./lexer.ts";

/** Pieces from which Markdown of all kinds comes about, and half of it. */
const piece = fc.constantFrom(
  ...["a", "b c", "é", "\n", "\n\n", "\r\n", "\t", "  ", "    ", "# ", "---\n", "===\n", "> "],
  ...[
    "- ",
    "* ",
    "+ ",
    "1. ",
    "- [x] ",
    "```",
    "```py\n",
    "~~~\n",
    "`",
    "*",
    "**",
    "_",
    "__init__",
  ],
  ...["|", "|---|---|\n", "| a | b |\n", "[x](y)", "![", "]", "<div>", "$", "\\(", "\\"],
);

test("a text that grows is read as a whole one is", () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const reader = new GrowingText();
      let text = "";
      for (const each of pieces) {
        text += each;
        reader.read(text);
      }
      expect(reader.read(text)).toEqual([...lex(text.replaceAll(/\r\n?/g, "\n"))]);
    }),
    { numRuns: 2000, seed: 6 },
  );
});

test("blocks that are settled are not read again", () => {
  const reader = new GrowingText();
  const [heading, , paragraph] = reader.read("# A\n\nsome text\n\nmore");
  const [sameHeading, , , ...rest] = reader.read("# A\n\nsome text\n\nmore and more\n");
  const [stillHeading, , stillParagraph] = reader.read("# A\n\nsome text\n\nmore and more\n\nend");
  expect(heading).toMatchObject({ type: "heading" });
  expect(rest.length).toBeGreaterThan(0);
  expect(stillHeading).toBe(sameHeading);
  expect(stillParagraph).toMatchObject({ type: paragraph!.type, raw: paragraph!.raw });
});

test("what is read at a piece doesn't grow with the text", () => {
  const reader = new GrowingText();
  const paragraph = "Some words, `code` and **more**.\n\n";
  let text = "";
  let blocks = reader.read(text);
  for (let at = 0; at < 200; at++) {
    const before = blocks;
    text += paragraph;
    blocks = reader.read(text);
    const kept = blocks.filter((block, index) => block === before[index]).length;
    // All but the last two paragraphs and the lines between them.
    expect(blocks.length - kept).toBeLessThan(6);
  }
});

test("another text is read anew", () => {
  const reader = new GrowingText();
  reader.read("one\n\ntwo\n\nthree\n\n");
  expect(reader.read("four")).toEqual([...lex("four")]);
});

test.each([
  ["quotes in quotes", "> ".repeat(20_000)],
  ["brackets", "[".repeat(20_000)],
  ["openings of emphasis", "**a ".repeat(20_000)],
  ["openings of links", "[a](".repeat(10_000)],
  ["dollars", "$a".repeat(20_000)],
  ["a very long text", "word ".repeat(200_000)],
])("survives %s", (_, text) => {
  const blocks = lex(text);
  expect(blocks.map(({ raw }) => raw).join("")).toBe(text);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { compose } from "./compose.ts";

const points = Array.from({ length: 0x110000 }, (_, point) => point).filter(
  (point) => point < 0xd800 || point > 0xdfff,
);
const marks = points
  .map((point) => String.fromCodePoint(point))
  .filter((each) => /\p{M}/u.test(each));

/** Marks of several classes, some that decompose, and some that none is moved past. */
const mark = fc.oneof(
  fc.constantFrom("\u0301", "\u0316", "\u0334", "\u0345", "\u0327", "\u031b", "\u0344", "\u093e"),
  fc.constantFrom(...marks),
);
/** Characters that have marks of their own, or become one with marks. */
const base = fc.constantFrom(
  "e",
  "\u1ec7",
  "\u1e69",
  "<",
  "\uac00",
  "\u0f71",
  "中",
  "😀",
  "\ud800",
  "",
);

test("crowds of marks are composed as the engine composes them", () => {
  const crowd = fc.tuple(base, fc.array(mark, { minLength: 50, maxLength: 200 }), base);
  fc.assert(
    fc.property(fc.array(crowd, { maxLength: 3 }), (parts) => {
      const text = parts.map(([before, all, after]) => before + all.join("") + after).join("");
      expect(compose(text)).toBe(text.normalize("NFC"));
    }),
  );
});

test("every mark finds its place", () => {
  const shuffled = marks.map((each, index) => [each, (index * 7919) % marks.length] as const);
  const text = shuffled.sort((a, b) => a[1] - b[1]).map(([each]) => each);
  expect(compose(text.join(""))).toBe(text.join("").normalize("NFC"));
});

test("few marks, and none", () => {
  expect(compose("e\u0316\u0301\u0323 x")).toBe("e\u0316\u0301\u0323 x".normalize("NFC"));
  expect(compose("e\u0301")).toBe("\u00e9");
  expect(compose("")).toBe("");
});

test("half a million marks in the worst order", () => {
  // The marks of each class, in the order of their classes.
  const text = compose(`e${"\u0345\u0301\u0316\u0334".repeat(131_072)}`);
  const each = 131_072;
  const rest = ["\u0334", "\u0316"].map((letter) => letter.repeat(each)).join("");
  expect(text).toBe(`e${rest}${"\u0301".repeat(each)}${"\u0345".repeat(each)}`.normalize("NFC"));
});

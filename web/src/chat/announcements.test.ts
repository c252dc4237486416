import { expect, test } from "vitest";
import { Announcements } from "./announcements.ts";

test("reads out whole lines, each once, and the rest at the end", () => {
  const announcements = new Announcements();
  const said = ["He", "Hello\nth", "Hello\nthere\n\nand", "Hello\nthere\n\nand more"].map((text) =>
    announcements.next(text, false),
  );
  expect(said).toEqual(["", "Hello", "there", ""]);
  expect(announcements.next("Hello\nthere\n\nand more.", true)).toBe("and more.");
  expect(announcements.next("Hello\nthere\n\nand more.", true)).toBe("");
});
